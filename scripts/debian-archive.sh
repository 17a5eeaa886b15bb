#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# debian-archive.sh - fetch packages of any Debian suite, also one that this machine does not use.
# It keeps its own apt state in the cache directory, takes the mirror from the machine's apt
# configuration, and changes nothing on the machine. It does not install.
#
# usage: debian-archive.sh [--refresh] [--to DIR] SUITE download PACKAGE...   .deb files into DIR (default: .)
#        debian-archive.sh [--refresh] [--to DIR] SUITE source PACKAGE...     unpacked source trees into DIR
#        debian-archive.sh [--refresh] SUITE names REGEX        package names that match
#        debian-archive.sh [--refresh] SUITE depends PACKAGE    names of the packages it depends on
#        debian-archive.sh [--refresh] SUITE versions NAME      of a package or src:PACKAGE: version and archive, newest first
#        debian-archive.sh [--refresh] SUITE lock NAME VERSION  the lines of packages.lock for it
#        debian-archive.sh [--refresh] SUITE sources            lines for sources.list, read without error
#        debian-archive.sh [--refresh] SUITE keys               directory of the keys that sign them
#          --refresh  read the package lists again, which otherwise are read once a day
# DUALPI2_ARCH is the architecture of the packages, amd64 without it.
#
# What is fetched has the version in scripts/packages.lock, if the mirror has that, and the checksum. Otherwise the
# newest version is fetched and listed in the cache directory, in "unlocked"; with DUALPI2_LOCKED=1 that is an error.
# DUALPI2_MIRROR and DUALPI2_SECURITY_MIRROR override the mirrors found.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

max_age_minutes=1440

usage() { die "$1; usage: debian-archive.sh [--refresh] [--to DIR] SUITE download|source|names|depends|versions|lock|sources|keys [ARGUMENT...]"; }

refresh='' to=.
if [ "${1-}" = --refresh ]; then
	refresh=1
	shift
fi
if [ "${1-}" = --to ]; then
	[ $# -ge 2 ] || usage "--to needs a directory"
	to=$2
	shift 2
fi
[ $# -ge 2 ] || usage "too few arguments"
suite=$1 action=$2
shift 2
[[ $suite =~ ^[a-z-]+$ ]] || usage "'$suite' is not a suite's name"
case $action in
download | source | names | depends | versions | lock) [ $# -ge 1 ] || usage "$action needs an argument" ;;
sources | keys) ;;
*) usage "unknown action '$action'" ;;
esac

command -v apt-get >/dev/null ||
	die "this machine has no apt; run on Debian or a derivative, where packages of Debian's suites can be fetched"

# "URI suite" for every enabled source of the machine, from one-line and deb822 files.
machine_sources() {
	local file
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -r "$file" ] || continue
		sed -n -E 's/^[[:space:]]*deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+)[[:space:]]+([^[:space:]]+).*/\2 \3/p' "$file"
	done
	for file in /etc/apt/sources.list.d/*.sources; do
		[ -r "$file" ] || continue
		awk '
			function flush(  i, j, u, s) {
				if (enabled) for (i = split(uris, u); i > 0; i--) for (j = split(suites, s); j > 0; j--) print u[i], s[j]
				uris = suites = ""; enabled = 1
			}
			BEGIN { enabled = 1 }
			/^#/ { next }
			/^[[:space:]]*$/ { flush(); field = ""; next }
			/^[^[:space:]]/ {
				field = tolower($0); sub(/:.*/, "", field)
				value = $0; sub(/^[^:]*:/, "", value)
				if (field == "enabled" && tolower(value) ~ /no|false|0/) enabled = 0
			}
			/^[[:space:]]/ { value = $0 }
			field == "uris" { uris = uris " " value }
			field == "suites" { suites = suites " " value }
			END { flush() }' "$file"
	done
}

debian_suites='^(buster|bullseye|bookworm|trixie|forky|sid|oldoldstable|oldstable|stable|testing|unstable)'
mirror=${DUALPI2_MIRROR:-$(machine_sources | awk -v re="$debian_suites" \
	'$2 ~ re && $2 !~ /security/ && $1 ~ /debian\/?$/ { print $1; exit }')}
security=${DUALPI2_SECURITY_MIRROR:-$(machine_sources | awk -v re="$debian_suites" \
	'$2 ~ re && $2 ~ /security/ { print $1; exit }')}
[ -n "$mirror" ] ||
	die "no Debian mirror in this machine's apt configuration; name one in DUALPI2_MIRROR and run again"

arch=${DUALPI2_ARCH:-amd64}
state=$DUALPI2_CACHE/apt/$suite
[ "$arch" = amd64 ] || state+=-$arch
mkdir -p "$state"/{lists/partial,archives/partial,trusted,none.d}
: >>"$state/status"

# One user of a state directory at a time: apt's own lock does not wait.
exec 9>"$state/lock"
flock 9

apt_options=(
	-o "Dir::State=$state" -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status"
	-o "Dir::Cache=$state" -o "Dir::Etc::sourcelist=$state/sources.list" -o "Dir::Etc::sourceparts=$state/none.d"
	-o "Dir::Etc::preferences=$state/none" -o "Dir::Etc::preferencesparts=$state/none.d"
	-o "Dir::Etc::trusted=$state/none" -o "Dir::Etc::trustedparts=$state/trusted"
	-o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
	-o APT::Sandbox::User= -o Acquire::Retries=3 -o Acquire::Languages=none
	-o APT::Get::List-Cleanup=true -o Acquire::Check-Date=true -o Acquire::Check-Valid-Until=true
)
[[ $suite != *-backports ]] || apt_options+=(-t "$suite")

# write_sources OPTION SUITE...: option is empty or in brackets, as sources.list has it
write_sources() {
	local option=$1 uri s kind
	shift
	for s in "$@"; do
		uri=$mirror
		[[ $s != *-security ]] || uri=$security
		for kind in deb deb-src; do
			echo "$kind${option:+ $option} $uri $s main"
		done
	done >"$state/sources.list"
}

# Reads what sources.list names. Fails also when apt would only warn that an index is missing.
readable() {
	apt-get "${apt_options[@]}" -q -o APT::Update::Error-Mode=any update >"$state/update.log" && touch "$state/updated"
}

update() {
	local base=${suite%-backports} expired='[check-valid-until=no]' key option suites
	mapfile -t suites < <(printf '%s\n' "$suite" "$base" | uniq)
	rm -f "$state/updated"
	for key in /etc/apt/trusted.gpg.d/debian-archive-* /usr/share/keyrings/debian-archive-*; do
		[[ $key != *removed* && -e $key ]] || continue
		ln -sf "$key" "$state/trusted/"
	done
	say "reading the package lists of $suite"
	# Not every suite has updates and a security archive, and one in development may carry a Release
	# file past its date.
	if [ -n "$security" ] && [ "$base" != sid ]; then
		for option in '' "$expired"; do
			write_sources "$option" "${suites[@]}" "$base-updates" "$base-security"
			! readable 2>"$state/update.err" || return 0
		done
		say "reading $suite without its updates and its security archive, which cannot be read"
	fi
	for option in '' "$expired"; do
		write_sources "$option" "${suites[@]}"
		! readable 2>"$state/update.err" || return 0
	done
	! retry 3 readable || return 0
	die "cannot read the package lists of $suite; see the messages above, check the network and the suite's name"
}

if [ -n "$refresh" ] || [ -z "$(find "$state/updated" -mmin "-$max_age_minutes" 2>/dev/null)" ]; then update; fi

versions() { # NAME
	local kind=Packages
	[[ $1 != src:* ]] || kind=Sources
	apt-cache "${apt_options[@]}" madison "${1#src:}" | awk -v kind="$kind" '$NF == kind && !seen[$3]++ { print $3, $6 }'
}

lock() { # NAME VERSION
	if [[ $1 == src:* ]]; then
		apt-cache "${apt_options[@]}" showsrc --only-source "${1#src:}" |
			awk -v version="$2" -v line="$suite $1 $2" '
				/^Version: / { wanted = $2 == version }
				/^[^ ]/ { sums = /^Checksums-Sha256:/ }
				/^ / && sums && wanted && !/[.]asc$/ { print line, $3, $1 }'
	else
		apt-cache "${apt_options[@]}" show "$1=$2" |
			awk -v line="$suite $1 $2" '
				/^Filename: / { sub(/.*\//, ""); file = $0 }
				/^SHA256: / { sum = $2 }
				END { if (sum) print line, file, sum }'
	fi
}

# What to ask apt for: the version in packages.lock that the suite has.
choose() { # PACKAGE...
	local name version known prefix=''
	[ "$action" = download ] || prefix=src:
	chosen=()
	for name; do
		known=$(versions "$prefix$name")
		version=$(locked "$suite" "$prefix$name" |
			awk 'NR == FNR { known[$1] = 1; next } known[$3] { print $3; exit }' <(echo "$known") -)
		(
			flock 9
			touch "$DUALPI2_CACHE/unlocked"
			sed -i "\\,^$suite $prefix$name ,d" "$DUALPI2_CACHE/unlocked"
			[ -n "$version" ] || echo "$suite $prefix$name ${known%% *}" >>"$DUALPI2_CACHE/unlocked"
		) 9>"$DUALPI2_CACHE/unlocked.lock"
		if [ -z "$version" ] && [ -n "$known" ]; then
			say "warning: $prefix$name ${known%% *} of $suite is not in packages.lock"
			[ "${DUALPI2_LOCKED-}" != 1 ] || die "fetch nothing that is not locked; run scripts/lock.sh, or unset DUALPI2_LOCKED"
		fi
		chosen+=("$name${version:+=$version}")
	done
}

verify() ( # DIR: its files have the checksums in packages.lock, as far as they are there
	cd "$1" || exit
	awk -v suite="$suite" 'NR == FNR { here[$0] = 1; next } $1 == suite && here[$4] { print $5 "  " $4 }' \
		<(find . -maxdepth 1 -type f -printf '%f\n') "$DUALPI2_ROOT/scripts/packages.lock" | sort -u |
		{
			sums=$(cat)
			[ -z "$sums" ] || sha256sum --check --quiet <<<"$sums" >&2
		}
)

fetch() ( # DIR download|source OPTION... (what was chosen)
	cd "$1" || exit
	shift
	apt-get "${apt_options[@]}" -q --only-source "$@" "${chosen[@]}" >"$state/download.log"
)

# A mirror may lack the small archive of Debian's own changes: the upstream source is what is wanted.
upstream_source() (
	scratch=$(mktemp -d "$state/source.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	fetch "$scratch" source --tar-only 2>>"$state/download.err" || exit
	for tarball in "$scratch"/*.orig.tar.?z*; do
		[ -e "$tarball" ] || exit 1
		verify "$scratch" || exit
		tar -x -f "$tarball" -C "$to"
		say "the mirror lacks Debian's changes: unpacked ${tarball##*/} alone"
	done
)

mkdir -p "$to"
case $action in
sources)
	cat "$state/sources.list"
	;;
keys)
	echo "$state/trusted"
	;;
names)
	apt-cache "${apt_options[@]}" pkgnames | grep -E -- "$1" || true
	;;
versions) versions "$1" ;;
lock) lock "$@" ;;
depends)
	apt-cache "${apt_options[@]}" depends --important "$1" | sed -n 's/^ *|\{0,1\}Depends: //p'
	;;
download | source)
	[ "$action" = download ] || command -v dpkg-source >/dev/null ||
		die "dpkg-source is missing; run scripts/setup.sh"
	# A list read earlier may name files that the mirror has since replaced.
	choose "$@"
	fetch "$to" "$action" 2>"$state/download.err" ||
		{ update && choose "$@" && fetch "$to" "$action" 2>"$state/download.err"; } ||
		{ [ "$action" = source ] && upstream_source; } ||
		retry 3 fetch "$to" "$action" ||
		die "cannot fetch $* from $suite; see the messages above"
	verify "$to" || die "$* of $suite has not the checksum in packages.lock; remove the files in $to and run again"
	;;
esac

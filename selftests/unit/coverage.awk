# SPDX-License-Identifier: GPL-2.0-only
# Judge what "make coverage" prints, as KTAP: the unit tests reach each line of the algorithm and 95 % of its branches,
# in each of so many headers. A header without figures was not reached and fails both.

BEGIN { least["Lines"] = least["Branches"] = 100 }
{ print "# " $0 }
/^(Lines|Branches) executed:/ {
	split($0, part, /[ :%]/)
	found[part[1]]++
	if (part[3] + 0 < least[part[1]])
		least[part[1]] = part[3] + 0
}
END {
	lines = found["Lines"] == headers && least["Lines"] == 100
	branches = found["Branches"] == headers && least["Branches"] >= 95
	print "1..2"
	print (lines ? "" : "not ") "ok 1 - algorithm_lines_all_reached"
	print (branches ? "" : "not ") "ok 2 - algorithm_branches_reached"
	exit !(lines && branches)
}

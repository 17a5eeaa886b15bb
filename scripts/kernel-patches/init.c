// SPDX-License-Identifier: GPL-2.0-only
/*
 * init - the first process of a kernel that boot.sh boots: runs net/dualpi2/options and the storm of namespaces on
 * the built-in dualpi2, reports in KTAP, and ends the machine.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static int number;

static void result(int good, const char *name)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++number, name);
}

/* Run a program; its output is printed as it comes. */
static int run(char *const argv[])
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

static int is_default(void)
{
	char line[32] = "";
	int fd = open("/proc/sys/net/core/default_qdisc", O_RDONLY);

	return fd >= 0 && read(fd, line, sizeof(line) - 1) > 0 && !close(fd) && !strcmp(line, "dualpi2\n");
}

int main(void)
{
	char *options[] = { "/options", NULL };
	char *storm[] = { "/storm", "netns", "--messages", STORM, NULL };
	struct utsname self;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	uname(&self);
	printf("# %s %s\nKTAP version 1\n1..3\n", self.release, self.machine);
	result(is_default(), "dualpi2_is_the_default_qdisc");
	if (access(options[0], X_OK))
		printf("ok %d - kselftest_options_of_the_builtin_dualpi2 # SKIP no libmnl\n", ++number);
	else
		result(run(options) == 0, "kselftest_options_of_the_builtin_dualpi2");
	result(run(storm) == 0, "counters_hold_while_namespaces_with_traffic_end");
	puts("# end");
	fflush(stdout);
	reboot(RB_AUTOBOOT);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * dualpi2_trace_pc: which basic blocks of a module have run, on any kernel.
 *
 * The compiler puts a call of __sanitizer_cov_trace_pc() into each basic block
 * of a module that is built with -fsanitize-coverage=trace-pc.  Here it sets the
 * byte of a map that stands for the return address, as an offset from the text
 * of the module that is watched.  It is not KCOV: no process is told from another,
 * no order is kept, nothing is counted.  A kernel with KCOV brings a function of
 * that name itself, and this module cannot be loaded there.
 *
 * /sys/kernel/debug/dualpi2_trace_pc/
 *   map    one byte for each byte of text, 1: a block begins here and has run;
 *	    can be read and mapped; what is written is ignored and clears it
 *   base   address and size of the text, as "0x... N"; "0x0 0": not loaded
 *
 * scripts/build-traced.sh builds both.  This one is to be loaded first.
 *
 * The base is learned when the watched module is loaded, so that the function
 * itself looks nothing up.  Loaded again, the module has another base and the
 * same offsets; the map goes on.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/vmalloc.h>

/* More than the text of sch_dualpi2 under KASAN. */
#define DUALPI2_TRACE_PC_BYTES	(512 * 1024)

static char *target = "sch_dualpi2";
module_param(target, charp, 0444);
MODULE_PARM_DESC(target, "module to watch, loaded after this one");

static u8 *dualpi2_trace_pc_map;
static unsigned long dualpi2_trace_pc_base;
static unsigned long dualpi2_trace_pc_size;
static struct dentry *dualpi2_trace_pc_dir;

/* No header of the kernel declares what the compiler calls. */
asmlinkage void __sanitizer_cov_trace_pc(void);

/* Called in any context, also with interrupts off: no lock, no call. */
void notrace __sanitizer_cov_trace_pc(void)
{
	unsigned long offset = _RET_IP_ - READ_ONCE(dualpi2_trace_pc_base);

	/* A size of 0 goes with no base. */
	if (offset < READ_ONCE(dualpi2_trace_pc_size))
		WRITE_ONCE(dualpi2_trace_pc_map[offset], 1);
}
EXPORT_SYMBOL(__sanitizer_cov_trace_pc);

static void dualpi2_trace_pc_watch(const struct module *mod)
{
#ifdef DUALPI2_HAVE_MOD_TEXT
	unsigned long base = (unsigned long)mod->mem[MOD_TEXT].base;
	unsigned long size = mod->mem[MOD_TEXT].size;
#else
	unsigned long base = (unsigned long)mod->core_layout.base;
	unsigned long size = mod->core_layout.text_size;
#endif
	/* Nothing of the module runs yet. */
	WRITE_ONCE(dualpi2_trace_pc_base, base);
	WRITE_ONCE(dualpi2_trace_pc_size, min_t(unsigned long, size, DUALPI2_TRACE_PC_BYTES));
}

static int dualpi2_trace_pc_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	const struct module *mod = data;

	if (strcmp(mod->name, target))
		return NOTIFY_DONE;
	if (action == MODULE_STATE_COMING) {
		dualpi2_trace_pc_watch(mod);
	} else if (action == MODULE_STATE_GOING) {
		/* Its place may become another module's. */
		WRITE_ONCE(dualpi2_trace_pc_size, 0);
		WRITE_ONCE(dualpi2_trace_pc_base, 0);
	}
	return NOTIFY_DONE;
}

static struct notifier_block dualpi2_trace_pc_nb = {
	.notifier_call = dualpi2_trace_pc_notify,
};

static ssize_t dualpi2_trace_pc_read(struct file *file, char __user *to, size_t count, loff_t *pos)
{
	return simple_read_from_buffer(to, count, pos, dualpi2_trace_pc_map, DUALPI2_TRACE_PC_BYTES);
}

static ssize_t dualpi2_trace_pc_clear(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	memset(dualpi2_trace_pc_map, 0, DUALPI2_TRACE_PC_BYTES);
	return count;
}

static int dualpi2_trace_pc_mmap(struct file *file, struct vm_area_struct *vma)
{
	return remap_vmalloc_range(vma, dualpi2_trace_pc_map, vma->vm_pgoff);
}

static const struct file_operations dualpi2_trace_pc_map_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.read	= dualpi2_trace_pc_read,
	.write	= dualpi2_trace_pc_clear,
	.mmap	= dualpi2_trace_pc_mmap,
	.llseek	= default_llseek,
};

static ssize_t dualpi2_trace_pc_base_read(struct file *file, char __user *to, size_t count, loff_t *pos)
{
	char text[64];
	int len;

	len = scnprintf(text, sizeof(text), "0x%lx %lu\n",
			READ_ONCE(dualpi2_trace_pc_base),
			READ_ONCE(dualpi2_trace_pc_size));
	return simple_read_from_buffer(to, count, pos, text, len);
}

static const struct file_operations dualpi2_trace_pc_base_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.read	= dualpi2_trace_pc_base_read,
	.llseek	= default_llseek,
};

static int __init dualpi2_trace_pc_init(void)
{
	int err;

	dualpi2_trace_pc_map = vmalloc_user(DUALPI2_TRACE_PC_BYTES);
	if (!dualpi2_trace_pc_map)
		return -ENOMEM;
	err = register_module_notifier(&dualpi2_trace_pc_nb);
	if (err) {
		vfree(dualpi2_trace_pc_map);
		return err;
	}
	dualpi2_trace_pc_dir = debugfs_create_dir("dualpi2_trace_pc", NULL);
	/* The wrapper of debugfs has no mmap; nothing here goes away while a
	 * file is open, for that holds the module.
	 */
	debugfs_create_file_unsafe("map", 0600, dualpi2_trace_pc_dir, NULL, &dualpi2_trace_pc_map_fops);
	debugfs_create_file_unsafe("base", 0400, dualpi2_trace_pc_dir, NULL, &dualpi2_trace_pc_base_fops);
	return 0;
}

static void __exit dualpi2_trace_pc_exit(void)
{
	debugfs_remove(dualpi2_trace_pc_dir);
	unregister_module_notifier(&dualpi2_trace_pc_nb);
	vfree(dualpi2_trace_pc_map);
}

module_init(dualpi2_trace_pc_init)
module_exit(dualpi2_trace_pc_exit)

MODULE_DESCRIPTION("Map of the basic blocks of a module that have run");
MODULE_LICENSE("GPL");

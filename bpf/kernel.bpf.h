/* SPDX-License-Identifier: GPL-2.0 */
/* The fields of kernel types that programs read, found by name when they are loaded (CO-RE). */
#ifndef TERRACE_KERNEL_BPF_H
#define TERRACE_KERNEL_BPF_H

struct super_block {
	__u32 s_dev;
} __attribute__((preserve_access_index));

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
	__u32 i_generation;
	__u64 i_size;
} __attribute__((preserve_access_index));

struct qstr {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
} __attribute__((preserve_access_index));

struct iattr {
	unsigned int ia_valid;
} __attribute__((preserve_access_index));

struct path {
	struct dentry *dentry;
} __attribute__((preserve_access_index));

struct file {
	struct path f_path;
	struct inode *f_inode;
	unsigned int f_flags;
	unsigned int f_mode;
} __attribute__((preserve_access_index));

struct renamedata {
	struct dentry *old_dentry;
	struct dentry *new_dentry;
} __attribute__((preserve_access_index));

struct vm_area_struct {
	struct file *vm_file;
} __attribute__((preserve_access_index));

struct vm_fault {
	struct vm_area_struct *vma;
} __attribute__((preserve_access_index));

#endif

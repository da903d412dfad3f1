/*
 * Starting touches far more of the libraries than serving: symbol tables, initializers, error
 * tables. These pages are clean read-only file mappings: dropping them never loses data, and costs
 * a page fault if one is needed again. Relocated pages are in writable segments and are kept.
 */
#include "trim.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int drop_clean_pages(struct dl_phdr_info *info, size_t size, void *context)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W))
            continue;
        const uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        const uintptr_t from = start / page * page;
        const uintptr_t to = (start + segment->p_memsz + page - 1) / page * page;
        /* the kernel refuses for its own mapping (vdso): no harm */
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void as_trim_memory(void)
{
    (void)malloc_trim(0);
    (void)dl_iterate_phdr(drop_clean_pages, NULL);
}

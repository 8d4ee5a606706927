/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hmm

#if !defined(_TRACE_HMM_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_HMM_H

#include <linux/tracepoint.h>

/* The verdicts that are reasons; the enum is in mm/memremap_alias.h. */
TRACE_DEFINE_ENUM(PGMAP_ALIAS_DECLINED);
TRACE_DEFINE_ENUM(PGMAP_ALIAS_UNREACHABLE);
TRACE_DEFINE_ENUM(PGMAP_ALIAS_INVISIBLE);
TRACE_DEFINE_ENUM(PGMAP_ALIAS_NO_CPU);
TRACE_DEFINE_ENUM(PGMAP_ALIAS_REVOKED);
TRACE_DEFINE_ENUM(PGMAP_ALIAS_MAP_FAILED);

#define show_hmm_alias_reason(reason)				\
	__print_symbolic(reason,				\
			 { PGMAP_ALIAS_DECLINED, "declined" },	\
			 { PGMAP_ALIAS_UNREACHABLE, "unreachable" }, \
			 { PGMAP_ALIAS_INVISIBLE, "invisible" },	\
			 { PGMAP_ALIAS_NO_CPU, "no_cpu" },	\
			 { PGMAP_ALIAS_REVOKED, "revoked" },	\
			 { PGMAP_ALIAS_MAP_FAILED, "map_failed" })

TRACE_EVENT(hmm_alias_map,
	    TP_PROTO(const char *name, unsigned long pfn, unsigned long nr),
	    TP_ARGS(name, pfn, nr),
	    TP_STRUCT__entry(__string(name, name)
			     __field(unsigned long, pfn)
			     __field(unsigned long, nr)
			     ),
	    TP_fast_assign(__assign_str(name);
			   __entry->pfn = pfn;
			   __entry->nr = nr;
			   ),
	    TP_printk("%s pfn=0x%lx nr=%lu", __get_str(name), __entry->pfn,
		      __entry->nr)
);

TRACE_EVENT(hmm_alias_fallback,
	    TP_PROTO(const char *name, unsigned long pfn, unsigned long nr,
		     int reason),
	    TP_ARGS(name, pfn, nr, reason),
	    TP_STRUCT__entry(__string(name, name)
			     __field(unsigned long, pfn)
			     __field(unsigned long, nr)
			     __field(int, reason)
			     ),
	    TP_fast_assign(__assign_str(name);
			   __entry->pfn = pfn;
			   __entry->nr = nr;
			   __entry->reason = reason;
			   ),
	    TP_printk("%s pfn=0x%lx nr=%lu reason=%s", __get_str(name),
		      __entry->pfn, __entry->nr,
		      show_hmm_alias_reason(__entry->reason))
);

TRACE_EVENT(dev_pagemap_revoke_alias,
	    TP_PROTO(const char *name, u64 start, u64 size),
	    TP_ARGS(name, start, size),
	    TP_STRUCT__entry(__string(name, name)
			     __field(u64, start)
			     __field(u64, size)
			     ),
	    TP_fast_assign(__assign_str(name);
			   __entry->start = start;
			   __entry->size = size;
			   ),
	    TP_printk("%s start=0x%llx size=0x%llx", __get_str(name),
		      __entry->start, __entry->size)
);

#endif /* _TRACE_HMM_H */

/* This part must be outside protection */
#include <trace/define_trace.h>

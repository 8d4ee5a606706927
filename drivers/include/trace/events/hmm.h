/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hmm

#if !defined(_TRACE_HMM_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_HMM_H

#include <linux/tracepoint.h>

/* The values of enum pgmap_alias_verdict that are reasons. */
#define show_hmm_alias_reason(reason)			\
	__print_symbolic(reason,			\
			 { 2, "declined" },		\
			 { 3, "unreachable" },		\
			 { 4, "invisible" },		\
			 { 5, "no_cpu" },		\
			 { 6, "revoked" },		\
			 { 7, "map_failed" })

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

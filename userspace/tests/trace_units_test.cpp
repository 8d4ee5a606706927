// SPDX-License-Identifier: MIT
// What `sluice trace` and `sluice top` read and write.
#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "clock_sync.hpp"
#include "fake_machine.hpp"
#include "program.hpp"
#include "timeline.hpp"
#include "top.hpp"
#include "trace_text.hpp"

using namespace sluice;
using namespace sluice::cli;
using json = nlohmann::ordered_json;

namespace {

trace_event event(const std::string &line)
{
	auto e = parse_trace_line(line);

	EXPECT_TRUE(e) << line;
	return e.value_or(trace_event());
}

std::vector<trace_event> events(std::initializer_list<std::string> lines)
{
	std::vector<trace_event> all;

	for (const std::string &line : lines)
		all.push_back(event(line));
	return all;
}

std::string at(double seconds, const std::string &what)
{
	return std::format("  a-b c-12-77      [001] d..1. {:.6f}: {}", seconds, what);
}

/// {"group/track": {{"name", ts, dur}}}
std::map<std::string, std::vector<std::tuple<std::string, double, double>>>
slices_of(const json &trace)
{
	std::map<int, std::string> groups, tracks;
	std::map<std::string, std::vector<std::tuple<std::string, double, double>>> all;

	for (const json &e : trace["traceEvents"]) {
		if (e["name"] == "process_name")
			groups[e["pid"]] = e["args"]["name"];
		else if (e["name"] == "thread_name")
			tracks[e["tid"]] = groups[e["pid"]] + "/" +
					   e["args"]["name"].get<std::string>();
		else if (e["ph"] == "X")
			all[tracks[e["tid"]]].emplace_back(e["name"], e["ts"],
							   e["dur"]);
	}
	return all;
}

json traced(const std::string &node, const std::string &boot, int64_t realtime,
	    std::vector<clock_offset> others = {})
{
	timeline t;

	t.slice("GPU 0", "sdma0", "job", 100, 150);
	return t.json({.name = node,
		       .boot_id = boot,
		       .kernel = "7.3",
		       .realtime_ns = realtime,
		       .lost = 0,
		       .others = others});
}

double last_time(const json &trace)
{
	return trace["traceEvents"].back()["ts"];
}

const char *fdinfo = "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\n"
		     "drm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n"
		     "drm-memory-vram:\t4 KiB\ndrm-memory-gtt: \t2 MiB\n"
		     "drm-engine-dma:\t1000000000 ns\ndrm-engine-capacity-dma:\t4\n"
		     "amd-sdma-batches:\t10\namd-sdma-batch-bytes:\t4096\n";

} // namespace

TEST(TraceUnits, ALineIsTakenApart)
{
	auto e = event("         my-prog x-1234    [003] ..... 12345.678901: "
		       "drm_sched_job_run: dev=0000:01:00.0, fence=12:3, ring=sdma0.1, "
		       "job count:1, hw job count:0, client_id:9");

	EXPECT_EQ(e.task, "my-prog x");
	EXPECT_EQ(e.pid, 1234u);
	EXPECT_DOUBLE_EQ(e.us, 12345678901.0);
	EXPECT_EQ(e.name, "drm_sched_job_run");
	EXPECT_EQ(e.field("dev"), "0000:01:00.0");
	EXPECT_EQ(e.field("fence"), "12:3");
	EXPECT_EQ(e.field("ring"), "sdma0.1");
	EXPECT_EQ(e.field("none"), "");
}

TEST(TraceUnits, FieldsWithoutAnEqualsSignAreRead)
{
	auto e = event(at(1, "io_uring_complete: ring 00a, req 00b, user_data 0x1f, "
			     "result -5, cflags 0x0 extra1 0 extra2 0 "));

	EXPECT_EQ(e.field("ring"), "00a");
	EXPECT_EQ(e.number("user_data"), 31);
	EXPECT_EQ(e.number("result"), -5);
	EXPECT_FALSE(e.number("req2"));
	EXPECT_FALSE(event(at(1, "x: n=12z")).number("n"));
}

TEST(TraceUnits, WhatIsNoEventIsNone)
{
	for (const char *line :
	     {"", "# tracer: nop", "garbage", "a-1 [0] x",
	      "a-1 [000] d... 1.0 no_colon", "-[ ]: :", "a-b [000] d... 1.0: x: y",
	      "a-1 [000] d... x.0: x: y"})
		EXPECT_FALSE(parse_trace_line(line)) << line;
}

TEST(TraceUnits, ATimeThatADoubleCannotTellIsNone)
{
	EXPECT_EQ(event("a-1 [0] . 9007199253.999999: x: y").us, 9007199253999999.0);
	for (const char *time : {"9007199254.740993", "18446744073709.551617",
				 "18446744073709551615.000000"})
		EXPECT_FALSE(parse_trace_line(std::format("a-1 [0] . {}: x: y", time)))
			<< time;
}

TEST(TraceUnits, RemarksAreToldFromEventsThatAreNotUnderstood)
{
	for (const char *line : {"", "# tracer: nop", "CPU:1 [LOST 12 EVENTS]"})
		EXPECT_TRUE(is_remark(line)) << line;
	EXPECT_FALSE(is_remark("sh-123     (    120) [001] .....  12.345678: a: b=1"));
}

TEST(TraceUnits, EventsThatWereLostAreCounted)
{
	EXPECT_EQ(lost_events("overrun: 7"), 7u);
	EXPECT_EQ(lost_events("commit overrun: 8"), 8u);
	EXPECT_EQ(lost_events("dropped events: 9"), 9u);
	for (const char *line : {"", "entries: 5", "overrun: ", "overrun: -1",
				 "overrun: 18446744073709551616"})
		EXPECT_EQ(lost_events(line), 0u) << line;
}

TEST(TraceUnits, ABatchIsOnItsRingAndInItsProcess)
{
	auto trace =
		timeline_of(
			events({
				at(1.000001,
				   "amdgpu_sdma_batch_submit: fence=5:1, descs=3, "
				   "bytes=4096, placement=0, placed=1, shares=1, "
				   "engines=0x1, wait_ns=0"),
				at(1.000002,
				   "amdgpu_sdma_batch_job: fence=5:1, engine=0, job=8:2"),
				at(1.000003,
				   "drm_sched_job_run: dev=0000:01:00.0, fence=8:2, "
				   "ring=sdma0.0, job count:0"),
				at(1.000010, "drm_sched_job_done: fence=8:2 signaled"),
				at(1.000012,
				   "amdgpu_sdma_batch_done: fence=5:1, error=0"),
				at(1.000013,
				   "amdgpu_sdma_batch_done: fence=99:1, error=0"),
			}),
			{})
			.json({});
	auto found = slices_of(trace);

	ASSERT_EQ(found.size(), 2u) << trace.dump(1);
	EXPECT_EQ(found["GPU 0000:01:00.0/sdma0.0"],
		  (std::vector{std::tuple(std::string("batch 5:1"), 1000003.0, 7.0)}));
	auto [name, from, took] = found["a-b c-12 77/SDMA batches"].at(0);
	EXPECT_EQ(name, "batch 5:1");
	EXPECT_EQ(from, 1000001.0);
	EXPECT_EQ(took, 11.0);
}

TEST(TraceUnits, ARingRunsOneJobAfterTheOther)
{
	auto found = slices_of(
		timeline_of(
			events({
				at(1.000001,
				   "drm_sched_job_run: dev=d, fence=1:1, ring=r, x=1"),
				at(1.000002,
				   "drm_sched_job_run: dev=d, fence=1:2, ring=r, x=1"),
				at(1.000005, "drm_sched_job_done: fence=1:1 signaled"),
				at(1.000009, "drm_sched_job_done: fence=1:2 signaled"),
				at(1.000009,
				   "drm_sched_job_run: dev=d, fence=1:3, ring=r, x=1"),
				at(1.000020, "other: x=1"),
			}),
			{})
			.json({}));
	auto &ring = found["GPU d/r"];

	ASSERT_EQ(ring.size(), 3u);
	EXPECT_EQ(std::get<1>(ring[1]), 1000005.0);
	EXPECT_EQ(std::get<2>(ring[1]), 4.0);
	EXPECT_EQ(std::get<0>(ring[2]), "job 1:3, not done");
	EXPECT_EQ(std::get<2>(ring[2]), 11.0);
}

TEST(TraceUnits, JobsThatAreNotDoneWaitForEachOther)
{
	auto found = slices_of(
		timeline_of(
			events({
				at(1.000001,
				   "drm_sched_job_run: dev=d, fence=1:1, ring=r, x=1"),
				at(1.000002,
				   "drm_sched_job_run: dev=d, fence=1:2, ring=r, x=1"),
				at(1.000003,
				   "drm_sched_job_run: dev=d, fence=1:3, ring=r, x=1"),
				at(1.000005, "drm_sched_job_done: fence=1:1 signaled"),
				at(1.000009, "other: x=1"),
			}),
			{})
			.json({}));

	EXPECT_EQ(
		found["GPU d/r"],
		(std::vector{
			std::tuple(std::string("job 1:1"), 1000001.0, 4.0),
			std::tuple(std::string("job 1:2, not done"), 1000005.0, 4.0),
			std::tuple(std::string("job 1:3, not done"), 1000009.0, 0.0)}));
}

TEST(TraceUnits, ARingDoesNotGoBackInTime)
{
	auto found = slices_of(
		timeline_of(
			events({
				at(1.000001,
				   "drm_sched_job_run: dev=d, fence=1:1, ring=r, x=1"),
				at(1.000001,
				   "drm_sched_job_run: dev=d, fence=1:2, ring=r, x=1"),
				at(1.000009, "drm_sched_job_done: fence=1:1 signaled"),
				at(1.000005, "drm_sched_job_done: fence=1:2 signaled"),
				at(1.000006,
				   "drm_sched_job_run: dev=d, fence=1:3, ring=r, x=1"),
				at(1.000010, "drm_sched_job_done: fence=1:3 signaled"),
			}),
			{})
			.json({}));

	EXPECT_EQ(std::get<1>(found["GPU d/r"].at(2)), 1000009.0);
}

TEST(TraceUnits, StepsThatOverlapGoToTracksOfTheirOwn)
{
	auto found = slices_of(
		timeline_of(
			events({
				at(1,
				   "tracing_mark_write: sluice: step=send.wire piece=0 begin=1000 "
				   "end=5000"),
				at(1,
				   "tracing_mark_write: sluice: step=send.wire piece=1 begin=2000 "
				   "end=6000"),
				at(1,
				   "tracing_mark_write: sluice: step=send.wire piece=2 begin=5000 "
				   "end=7000"),
				at(1,
				   "tracing_mark_write: sluice: step=send.wire piece=3 begin=9 "
				   "end=8"),
				at(1,
				   "tracing_mark_write: somebody else: step=x begin=1 end=2"),
			}),
			{})
			.json({}));

	ASSERT_EQ(found.size(), 2u);
	EXPECT_EQ(found["a-b c-12 77/send.wire"].size(), 2u);
	EXPECT_EQ(found["a-b c-12 77/send.wire 2"].at(0),
		  std::tuple(std::string("piece 1"), 2.0, 4.0));
}

TEST(TraceUnits, RequestsAreFoundByRingAndRequest)
{
	auto found = slices_of(
		timeline_of(
			events({
				at(1.000001,
				   "io_uring_submit_req: ring 0a, req 0b, user_data 0x1, "
				   "opcode READ, flags 0x0, sq_thread 0"),
				at(1.000002,
				   "io_uring_submit_req: ring 0c, req 0b, user_data 0x1, "
				   "opcode WRITE, flags 0x0, sq_thread 0"),
				at(1.000005,
				   "io_uring_complete: ring 0a, req 0b, user_data 0x1, "
				   "result 5, cflags 0x0 extra1 0 extra2 0"),
			}),
			{})
			.json({}));

	ASSERT_EQ(found["a-b c-12 77/io_uring"].size(), 1u);
	EXPECT_EQ(found["a-b c-12 77/io_uring"][0],
		  std::tuple(std::string("READ"), 1000001.0, 4.0));
}

TEST(TraceUnits, ARingAndARequestAreNotMistakenForOthers)
{
	auto found = slices_of(
		timeline_of(
			events({
				at(1.000001,
				   "io_uring_submit_req: ring 1, req 08, opcode READ, x 0"),
				at(1.000002,
				   "io_uring_submit_req: ring 10, req 8, opcode WRITE, x 0"),
				at(1.000005,
				   "io_uring_complete: ring 1, req 08, result 5"),
			}),
			{})
			.json({}));

	EXPECT_EQ(found["a-b c-12 77/io_uring"],
		  (std::vector{std::tuple(std::string("READ"), 1000001.0, 4.0)}));
}

TEST(TraceUnits, TracksOfOneNameStayApart)
{
	timeline t;

	t.slice("g", "x", "a", 1, 9);
	t.slice("g", "x 2", "b", 1, 9);
	t.span("g", "x", "c", 2, 4);
	t.span("g", "x", "d", 3, 5);
	std::set<int> tracks;
	auto all = t.json({});
	for (const json &e : all["traceEvents"])
		if (e["ph"] == "X")
			tracks.insert(e["tid"].get<int>());
	EXPECT_EQ(tracks.size(), 4u);
}

TEST(TraceUnits, ACardHasARate)
{
	auto trace = timeline_of({}, {{1e6, "rxe0", "sent_bytes", 100},
				      {1e6, "rxe1", "sent_bytes", 5},
				      {3e6, "rxe0", "sent_bytes", 300}})
			     .json({});
	const json &last = trace["traceEvents"].back();

	EXPECT_EQ(last["ph"], "C");
	EXPECT_EQ(last["name"], "sent_bytes a second");
	EXPECT_EQ(last["args"]["value"], 100.0);
}

TEST(TraceUnits, ACounterThatWasSetBackCountsFromZero)
{
	auto trace = timeline_of({}, {{1e6, "rxe0", "sent_bytes", 300},
				      {3e6, "rxe0", "sent_bytes", 100}})
			     .json({});

	EXPECT_EQ(trace["traceEvents"].back()["args"]["value"], 50.0);
}

TEST(TraceUnits, CountersOfTwoCardsAreNotMistaken)
{
	auto trace = timeline_of({}, {{1e6, "rx", "exx", 5}, {2e6, "rxe", "xx", 9}})
			     .json({});

	EXPECT_TRUE(trace["traceEvents"].empty()) << trace.dump();
}

namespace {

std::span<const std::byte> bytes_of(const ping_packet &p)
{
	return std::as_bytes(std::span(&p, 1));
}

} // namespace

TEST(TraceUnits, OnlyQuestionsAreAnswered)
{
	ping_packet question{.number = 5};
	auto answer = answer_to(bytes_of(question), "boot", 7);

	ASSERT_TRUE(answer);
	EXPECT_EQ(answer->number, 5u);
	EXPECT_EQ(answer->there, 7);
	EXPECT_EQ(boot_in(*answer), "boot");
	// Two sides that answer each other would never stop.
	EXPECT_FALSE(answer_to(bytes_of(*answer), "other", 8));
	EXPECT_FALSE(answer_to(bytes_of(question).first(63), "boot", 7));
	question.boot.fill('x');
	question.boot[0] = 0;
	EXPECT_EQ(boot_in(answer_to(bytes_of(question), "boot", 7).value()), "boot");
	question.magic++;
	EXPECT_FALSE(answer_to(bytes_of(question), "boot", 7));
}

TEST(TraceUnits, OnlyAnswersToTheQuestionAreMeasured)
{
	ping_packet p{.number = 5, .there = 9, .boot = {'b'}};

	EXPECT_EQ(ping_of(bytes_of(p), 5, 1, 2)->there, 9);
	EXPECT_FALSE(ping_of(bytes_of(p), 6, 1, 2));
	// No clock has these values, and arithmetic with them would overflow.
	for (int64_t there :
	     {int64_t{0}, int64_t{-1}, int64_t{1} << 62, INT64_MAX, INT64_MIN}) {
		p.there = there;
		EXPECT_FALSE(ping_of(bytes_of(p), 5, 1, 2)) << there;
	}
	p.boot.fill('x');
	EXPECT_EQ(boot_in(p).size(), 39u);
}

TEST(TraceUnits, TheFastestPingTells)
{
	auto o = offset_of({{.sent = 100, .there = 5000, .received = 300},
			    {.sent = 400, .there = 5250, .received = 500},
			    {.sent = 600, .there = 9000, .received = 900}},
			   "boot");

	EXPECT_EQ(o.ns, 4800);
	EXPECT_EQ(o.uncertainty_ns, 50);
	EXPECT_EQ(o.boot_id, "boot");
	auto both = combined(o, {.boot_id = "boot", .ns = 4900, .uncertainty_ns = 20});
	EXPECT_EQ(both.ns, 4850);
	EXPECT_EQ(both.uncertainty_ns, 100);
}

TEST(TraceUnits, TwoTracesAreMergedByWhatIsKnownBest)
{
	auto a = traced("a", "boot-a", 1000), same = traced("b", "boot-a", 0);
	auto by_time = traced("b", "boot-b", 51000);
	auto by_ping = traced("b", "boot-b", 51000, {{"boot-a", 7000, 30}});
	auto other_way = traced("b", "boot-c", 0);
	auto a_knows = traced("a", "boot-a", 1000, {{"boot-c", 9000, 40}});

	EXPECT_EQ(last_time(merge_traces(a, same, {})->json), 100.0);
	EXPECT_TRUE(merge_traces(a, same, {})->bounded);
	EXPECT_EQ(last_time(merge_traces(a, by_ping, {})->json), 107.0);
	EXPECT_EQ(merge_traces(a, by_ping, {})->offset.uncertainty_ns, 30);
	EXPECT_EQ(last_time(merge_traces(a_knows, other_way, {})->json), 91.0);
	EXPECT_EQ(last_time(merge_traces(a, by_time, {})->json), 150.0);
	EXPECT_FALSE(merge_traces(a, by_time, {})->bounded);
	EXPECT_TRUE(merge_traces(a, by_time, {})
			    ->json["otherData"]["uncertainty_ns"]
			    .is_null());
	EXPECT_EQ(last_time(merge_traces(a, by_ping, -20000)->json), 80.0);
}

TEST(TraceUnits, WhatEitherTraceLostIsSaid)
{
	auto a = traced("a", "x", 0), b = traced("b", "x", 0);

	a["otherData"]["lost_events"] = 3;
	b["otherData"]["lost_events"] = 4;
	EXPECT_EQ(merge_traces(a, b, {})->json["otherData"]["lost_events"], 7);
}

TEST(TraceUnits, ProcessesOfTwoNodesStayApart)
{
	auto both = slices_of(
		merge_traces(traced("a", "x", 0), traced("b", "x", 0), {})->json);

	EXPECT_TRUE(both.contains("b: GPU 0/sdma0"));
	std::set<int> pids;
	auto all = merge_traces(traced("n", "x", 0), traced("n", "x", 0), {})->json;
	for (const json &e : all["traceEvents"])
		pids.insert(e["pid"].get<int>());
	EXPECT_EQ(pids.size(), 2u);
	EXPECT_NE(all.dump().find("n (2): GPU 0"), std::string::npos);
}

TEST(TraceUnits, WhatIsNoTraceIsRefused)
{
	auto good = traced("a", "x", 0);

	for (const char *text : {"[]", "1", "{}", "{\"traceEvents\": 1}", "null"}) {
		auto got = merge_traces(good, json::parse(text), {});

		ASSERT_FALSE(got) << text;
		EXPECT_EQ(got.error().code(), errc::input);
	}
	// From another program: the user has to give the offset.
	auto foreign =
		json::parse("{\"traceEvents\": [{\"ts\": 1}, 5, {\"pid\": \"x\"}],"
			    "\"otherData\": [1]}");
	EXPECT_FALSE(merge_traces(good, foreign, {}));
	EXPECT_TRUE(merge_traces(good, foreign, 5));
}

TEST(TraceUnits, NumbersThatCannotBeAreNone)
{
	auto good = traced("a", "x", 0);

	for (const char *n : {"9223372036854775807", "-9223372036854775808",
			      "18446744073709551615", "4611686018427387904"}) {
		auto bad = json::parse(std::format(
			R"({{"otherData": {{"boot_id": "y", "lost_events": {0},
			    "realtime_minus_monotonic_ns": {0}, "other_clocks":
			    [{{"boot_id": "x", "offset_ns": {0}, "uncertainty_ns": 1}}]}},
			    "traceEvents": [{{"pid": {0}, "ts": 1}}]}})",
			n));

		EXPECT_FALSE(merge_traces(good, bad, {})) << n;
		EXPECT_FALSE(merge_traces(bad, good, {})) << n;
		auto both = merge_traces(good, bad, 5);
		ASSERT_TRUE(both) << n;
		EXPECT_EQ(both->json["otherData"]["lost_events"], 0) << n;
		EXPECT_EQ(both->json["traceEvents"].back()["pid"],
			  bad["traceEvents"][0]["pid"])
			<< n;
	}
}

TEST(TraceUnits, ProcessesOfAnyNumberStayApart)
{
	auto a = json::parse(R"({"traceEvents": [{"pid": 7}, {"pid": -3}]})");
	auto b = json::parse(R"({"traceEvents": [{"pid": 0}, {"pid": -2}]})");
	auto all = merge_traces(a, b, 0)->json["traceEvents"];

	EXPECT_EQ(all[0]["pid"], 7);
	EXPECT_GT(all[3]["pid"], 7);
	EXPECT_EQ(all[2]["pid"].get<int>() - all[3]["pid"].get<int>(), 2);
}

TEST(TraceUnits, AFileThatIsNestedTooDeepIsRefused)
{
	// Copying recurses as deep, and the stack is limited.
	constexpr size_t levels = 1 << 20;
	std::istringstream deep(R"({"traceEvents": )" + std::string(levels, '[') +
				std::string(levels, ']') + "}");
	std::istringstream flat(R"({"traceEvents": [{"args": {"a": [[[1]]]}}]})");
	std::istringstream cut("{\"traceEvents\": [");
	auto got = read_trace(deep, "deep");

	ASSERT_FALSE(got);
	EXPECT_EQ(got.error().code(), errc::input);
	EXPECT_TRUE(read_trace(flat, "flat"));
	EXPECT_FALSE(read_trace(cut, "cut"));
}

TEST(ToolsUnits, BadArgumentsAreNamed)
{
	struct row {
		std::vector<const char *> words;
		int status;
		const char *said;
	};
	fake_machine machine;
	std::string root = machine.root();

	for (const row &r : {
		     row{{"bench"}, 2, "name a HOST"},
		     row{{"bench", "--from", "gpu"}, 2, "--from and --to"},
		     row{{"bench", "--from", "host", "--to", "host"}, 2, "no device"},
		     row{{"bench", "--from", "a", "--to", "b"}, 2, "must be memory"},
		     row{{"bench", "--from", "a", "--to", "gpu", "--gather", "2"},
			 2,
			 "--gather"},
		     row{{"bench", "host", "--listen"}, 2, "exclude"},
		     row{{"bench", "--listen", "--perftest"}, 2, "HOST"},
		     row{{"bench", "x", "--sizes", "4k"}, 2, "--sizes: \"4k\""},
		     row{{"bench", "--from", "a", "--to", "gpu", "--direct", "--sizes",
			  "512"},
			 2,
			 "whole pages"},
		     row{{"bench", "x", "--token-file", "/none"}, 3, "/none"},
		     row{{"bench", "--from", "/none", "--to", "host"}, 3, "/none"},
		     row{{"trace"}, 2, "--out"},
		     row{{"trace", "merge", "/none", "/none", "--out", "x"},
			 3,
			 "/none"},
		     row{{"trace", "merge", "/proc/version", "/none", "--out", "x"},
			 3,
			 "no JSON"},
		     row{{"top", "--interval", "0"}, 2, "--interval"},
	     }) {
		std::vector<const char *> words{"sluice", "--sysroot", root.c_str()};
		std::ostringstream out, err;

		words.insert(words.end(), r.words.begin(), r.words.end());
		EXPECT_EQ(run_program(static_cast<int>(words.size()), words.data(), out,
				      err),
			  r.status)
			<< r.said << err.str();
		EXPECT_NE(err.str().find(r.said), std::string::npos) << err.str();
	}
}

TEST(TopUnits, FdinfoIsRead)
{
	auto c = parse_fdinfo(fdinfo);

	ASSERT_TRUE(c);
	EXPECT_EQ(c->gpu, "0000:03:00.0");
	EXPECT_EQ(c->id, 7u);
	EXPECT_EQ(c->vram, 4096u);
	EXPECT_EQ(c->gtt, 2u << 20);
	EXPECT_EQ(c->busy_ns, (std::map<std::string, uint64_t>{{"dma", 1000000000}}));
	EXPECT_EQ(c->batches, 10u);
	EXPECT_EQ(c->batch_bytes, 4096u);
	EXPECT_FALSE(parse_fdinfo("drm-driver:\ti915\n"));
	EXPECT_FALSE(parse_fdinfo("pos:\t0\n"));
	EXPECT_FALSE(parse_fdinfo(""));
	auto plain = parse_fdinfo("drm-driver:\tamdgpu\namd-sdma-batches:\tx\n:\n");
	ASSERT_TRUE(plain);
	EXPECT_FALSE(plain->batches);
}

TEST(TopUnits, AmountsThatDoNotFitAreNone)
{
	auto c = parse_fdinfo("drm-driver:\tamdgpu\n"
			      "drm-memory-vram:\t18014398509481985 KiB\n"
			      "drm-memory-gtt:\t17592186044417 MiB\n"
			      "amd-sdma-batches:\t18446744073709551616\n");

	ASSERT_TRUE(c);
	EXPECT_EQ(c->vram, 0u);
	EXPECT_EQ(c->gtt, 0u);
	EXPECT_FALSE(c->batches);
	c = parse_fdinfo("drm-driver:\tamdgpu\n"
			 "drm-memory-vram:\t18014398509481983 KiB\n");
	EXPECT_EQ(c->vram, UINT64_MAX - 1023);
}

TEST(TopUnits, CountersAreNumbersAndNothingElse)
{
	EXPECT_EQ(parse_counter("10\n"), 10u);
	EXPECT_EQ(parse_counter("18446744073709551615"), UINT64_MAX);
	for (const char *text :
	     {"", "\n", "-5\n", "+5", "N/A (no PMA)", "5x", "18446744073709551616"})
		EXPECT_FALSE(parse_counter(text)) << text;
}

// Root looks at names that other users chose.
TEST(TopUnits, ANameDoesNothingToTheTerminal)
{
	usage_rates of{.seconds = 1, .gpus = {}, .nics = {}};

	of.gpus.push_back({.command = "\033[2J\a\x9b\r"
				      "ev\xc3\xa4l"});
	auto text = top_text(of);
	EXPECT_NE(text.find("?[2J???ev??l"), text.npos) << text;
	EXPECT_EQ(top_json(of)["gpus"][0]["command"], of.gpus[0].command);
}

TEST(TopUnits, AMachineIsReadAndFilesOfOneClientCountOnce)
{
	fake_machine machine;

	machine.file("proc/41/fdinfo/3", fdinfo);
	machine.file("proc/41/fdinfo/4", fdinfo);
	machine.file("proc/41/fdinfo/5", "pos:\t0\n");
	machine.file("proc/41/comm", "train\n");
	machine.file("proc/42/comm", "idle\n");
	machine.file("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data",
		     "10\n");
	machine.file("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed",
		     "N/A (no PMA)\n");
	machine.file("sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan",
		     "10\n");
	machine.file("sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts", "3\n");
	auto now = read_usage(machine.root());

	ASSERT_EQ(now.clients.size(), 1u);
	EXPECT_EQ(now.clients[0].pid, 41u);
	EXPECT_EQ(now.clients[0].command, "train");
	ASSERT_EQ(now.counters.size(), 2u);
	EXPECT_EQ(now.counters[0].value, 40u); // words of four bytes
	EXPECT_EQ(traffic_of(now.counters).size(), 2u);
}

TEST(TopUnits, RatesAreOfTheTimeBetween)
{
	usage before{.us = 1e6,
		     .clients = {*parse_fdinfo(fdinfo)},
		     .counters = {{0, "rxe0", "sent_bytes", 100}}};
	usage now = before;

	now.us = 3e6;
	now.clients[0].batches = 30;
	now.clients[0].busy_ns["dma"] += 1000000000;
	now.clients.push_back(now.clients[0]); // another file of the same process
	now.clients[1].id = 8;
	now.counters[0].value = 50; // reset
	auto rates = rates_between(before, now);

	ASSERT_EQ(rates.gpus.size(), 1u);
	EXPECT_EQ(rates.seconds, 2);
	EXPECT_EQ(rates.gpus[0].batches, (30 - 10) / 2.0 + 30 / 2.0);
	EXPECT_EQ(rates.gpus[0].busy["dma"], 0.5 + 1.0);
	EXPECT_EQ(rates.gpus[0].vram, 8192u);
	EXPECT_EQ(rates.nics[0].a_second, 25);
}

TEST(TopUnits, AFileThatAnotherProcessHasNowWasCountedBefore)
{
	usage before{.us = 1e6, .clients = {*parse_fdinfo(fdinfo)}, .counters = {}};
	usage now = before;

	before.clients[0].pid = 100;
	now.clients[0].pid = 101;
	now.us = 2e6;
	auto rates = rates_between(before, now);

	ASSERT_EQ(rates.gpus.size(), 1u);
	EXPECT_EQ(rates.gpus[0].pid, 101u);
	EXPECT_EQ(rates.gpus[0].batches, 0);
	EXPECT_EQ(rates.gpus[0].busy["dma"], 0);
}

TEST(TopUnits, TheTableFitsAndSaysWhatIsNotKnown)
{
	usage_rates of{.seconds = 1, .gpus = {}, .nics = {}};

	EXPECT_NE(top_text(of).find("no process"), std::string::npos);
	EXPECT_NE(top_text(of).find("no card"), std::string::npos);
	of.gpus.push_back({.pid = 4194304,
			   .command = "a-very-long-command",
			   .gpu = "0000:03:00.0",
			   .busy = {{"dma", 3.999}},
			   .vram = 1023ull << 30,
			   .gtt = 0,
			   .batches = 123456,
			   .batch_bytes = {}});
	of.nics.push_back({"rxe0", "sent_bytes", 0, 5});
	of.nics.push_back({"rxe0", "send_err", 0, 5});
	auto text = top_text(of);
	EXPECT_NE(text.find("123k"), text.npos) << text;
	EXPECT_NE(text.find("  400  "), text.npos) << text;
	EXPECT_NE(text.find("  -  "), text.npos) << text;
	EXPECT_NE(text.find("sent_bytes"), text.npos);
	EXPECT_EQ(text.find("send_err"), text.npos);
	for (size_t from = 0, end; from < text.size(); from = end + 1) {
		end = text.find('\n', from);
		EXPECT_LE(end - from, 80u) << text.substr(from, end - from);
	}
	auto j = top_json(of);
	EXPECT_TRUE(j["gpus"][0]["batch_bytes_per_s"].is_null());
	EXPECT_EQ(j["nics"].size(), 2u);
}

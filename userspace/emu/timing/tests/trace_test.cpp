// SPDX-License-Identifier: MIT
// What the emulator records, as a program, and virtual time as a trace.
#include "rig.hpp"
#include "simple.hpp"
#include "trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <format>

using namespace sluice::timing;
using namespace sluice::timing::test;
using sluice::emu::test::Rig;

namespace {

std::string event(const char *name, double start, double end, unsigned ring,
		  const char *more = "", unsigned engine = 0)
{
	return std::format(R"({{"ph":"X","name":"{}","pid":0,"tid":{},"ts":{},)"
			   R"("dur":{},"args":{{"queue":0,"ring":{},"words":1,)"
			   R"("bytes":1000{}}}}})",
			   name, engine, start, end - start, ring, more);
}

Program read(std::initializer_list<std::string> events)
{
	std::string all;

	for (const std::string &e : events)
		all += (all.empty() ? "[" : ",") + e;
	TraceFile file{"FILE", all + "]"};
	return read_trace({&file, 1});
}

std::string refusal(const std::string &text)
{
	TraceFile file{"FILE", text};

	try {
		read_trace({&file, 1});
	} catch (const std::runtime_error &e) {
		return e.what();
	}
	return "taken";
}

// An indirect buffer is one packet of the ring, and padding is none.
TEST(Trace, PacketsBelongToTheDoorbellThatLetThemRun)
{
	Program p = read({event("doorbell", 0, 0, 64), event("doorbell", 1, 1, 96),
			  event("nop", 1, 2, 0), event("indirect", 2, 3, 0),
			  event("timestamp", 3, 4, 0), event("timestamp", 3, 4, 60),
			  event("timestamp", 4, 5, 64)});

	EXPECT_EQ(p.steps[0].kind, Kind::submit);
	EXPECT_EQ(p.steps[0].packets, 2u);
	EXPECT_EQ(p.steps[2].batch, 0u);
	EXPECT_EQ(p.steps[3].batch, 0u);
	EXPECT_EQ(p.steps[4].batch, 0u);
	EXPECT_EQ(p.steps[5].batch, 1u);
	EXPECT_EQ(p.steps[1].packets, 1u);
}

TEST(Trace, APollWaitsForTheLastWriterOfItsWord)
{
	const char *at = R"(,"from":["system",0,64])", *to = R"(,"to":["system",0,64])",
		   *other = R"(,"to":["system",0,72])";
	Program p =
		read({event("fence", 1, 2, 0, to, 1), event("fence", 3, 4, 0, to, 1),
		      event("fence", 4, 5, 0, other, 1), event("poll", 0, 6, 0, at),
		      event("fence", 7, 8, 0, to, 1)});
	auto poll = std::ranges::find(p.steps, Kind::poll, &Step::kind);

	ASSERT_EQ(poll->after.size(), 1u);
	// sorted by start, the poll is the first
	EXPECT_EQ(poll->after[0], 2u);
}

// The host has slept for the trap before the doorbell, not for the one in flight then
// or the one after it.
TEST(Trace, TheHostSleepsForInterruptsBeforeADoorbell)
{
	Program p = read({event("doorbell", 0, 0, 64), event("trap", 1, 2, 0),
			  event("trap", 2, 4, 32), event("doorbell", 3, 3, 128),
			  event("trap", 4, 5, 64)});
	std::vector<std::pair<Kind, std::size_t>> host, expected{{Kind::submit, 0},
								 {Kind::sleep, 1},
								 {Kind::submit, 0},
								 {Kind::sleep, 2}};

	for (const Step &s : p.steps)
		if (s.lane == 0)
			host.emplace_back(s.kind, s.after.size());
	EXPECT_EQ(host, expected);
}

TEST(Trace, RefusalsNameTheFileAndTheEvent)
{
	EXPECT_TRUE(refusal("{").starts_with("FILE: "));
	EXPECT_EQ(refusal("{}"), "FILE: is no list of events");
	EXPECT_TRUE(refusal("[{}]").starts_with("FILE: event 0: "));
	EXPECT_EQ(refusal(R"([{"ph":"M","args":{"lost_events":3}}])"),
		  "FILE: event 0: 3 events were lost: the emulator keeps no more than "
		  "262144");
	EXPECT_EQ(refusal("[" + event("await", 0, 1, 0) + "]"),
		  "FILE: event 0: 'await' is no packet");
	EXPECT_EQ(refusal("[" + event("jump", 0, 1, 0) + "]"),
		  "FILE: event 0: no packet is called 'jump'");
	EXPECT_EQ(refusal("[" + event("trap", 0, 1, 0, R"(,"to":["moon",0,0])") + "]"),
		  "FILE: event 0: 'to' has no such path");
}

// A copy and a trap that an emulated engine executed, by hand on the machine of
// simple.hpp: 12 for two packets and a doorbell, come 42, fetched 112; 1000 bytes of
// the GPU's own take 100; the trap 20.
TEST(Trace, WhatTheEmulatorExecuted)
{
	Rig rig;
	const auto at = [](sluice::emu::u64 offset) {
		return sluice::emu::lower(Rig::aperture + offset);
	};
	const auto hi = sluice::emu::upper(Rig::aperture);

	rig.gpu.timeline().enable(true);
	rig.submit({1, 999, 0, at(0), hi, at(8 << 20), hi, 6, 0});
	TraceFile file{"FILE", "[" + rig.gpu.timeline().json(0) + "]"};
	Program p = read_trace({&file, 1});
	Result r = simulate(p, simple());

	ASSERT_EQ(p.steps.size(), 4u);
	EXPECT_EQ(p.steps[0].packets, 2u);
	EXPECT_EQ(p.steps[1].kind, Kind::copy);
	EXPECT_EQ(p.steps[1].bytes, 1000u);
	EXPECT_EQ(r.spans[1].start, 112);
	EXPECT_EQ(r.spans[1].end, 212);
	EXPECT_EQ(r.spans[2].end, 232);
	EXPECT_EQ(r.spans[3].end, 1235);
}

TEST(Trace, Written)
{
	Program p = read({event("doorbell", 0, 0, 64), event("trap", 1, 2, 0)});
	std::string json = write_trace(p, simulate(p, simple()));

	EXPECT_NE(json.find(R"("name":"trap","pid":0,"tid":1,"ts":0.111,"dur":0.020)"),
		  std::string::npos)
		<< json;
	EXPECT_NE(json.find("gpu0, MODEL"), std::string::npos);
	EXPECT_NE(json.find("host, MODEL"), std::string::npos);
	EXPECT_TRUE(json.ends_with("}]\n"));
}

// The same program twice gives the same times, to the bit.
TEST(Trace, Deterministic)
{
	auto once = [] {
		Program p = read({event("doorbell", 0, 0, 64), event("copy", 1, 2, 0)});
		return write_trace(p, simulate(p, simple()));
	};

	EXPECT_EQ(once(), once());
}

} // namespace

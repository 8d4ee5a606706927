// SPDX-License-Identifier: MIT
// The collectives do what DMA-Latte's program does, and the model says of them what
// docs/model.md says.
#include "paper.hpp"
#include "report.hpp"
#include "simple.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

using namespace sluice::timing;
using namespace sluice::timing::test;

namespace {

struct Counts {
	std::size_t commands, copies;
};

Counts count(Collective c, Way w)
{
	Counts n{};

	for (const Command &cmd : latte_commands(c, w)) {
		n.commands++;
		n.copies += cmd.kind == Kind::copy ? cmd.to.size() : 1;
	}
	return n;
}

// Copies and completions of the whole machine, as shared tables of the paper count.
TEST(Latte, Commands)
{
	for (auto c : {Collective::all_gather, Collective::all_to_all}) {
		EXPECT_EQ(count(c, Way::pcpy).commands, 56u);
		EXPECT_EQ(count(c, Way::b2b).commands, 8u);
		EXPECT_EQ(count(c, Way::b2b).copies, 56u);
	}
	EXPECT_EQ(count(Collective::all_gather, Way::pair).commands, 32u);
	EXPECT_EQ(count(Collective::all_to_all, Way::pair).commands, 28u);
}

// Each GPU's part reaches each other GPU once.
TEST(Latte, EveryPairIsServedOnce)
{
	for (auto c : {Collective::all_gather, Collective::all_to_all})
		for (auto w : {Way::pcpy, Way::pair, Way::b2b}) {
			std::map<std::pair<unsigned, unsigned>, int> served;
			for (const Command &cmd : latte_commands(c, w))
				for (unsigned to : cmd.to) {
					served[{cmd.gpu, to}]++;
					if (cmd.kind == Kind::swap)
						served[{to, cmd.gpu}]++;
				}
			EXPECT_EQ(served.size(), 56u);
			for (auto [pair, times] : served)
				EXPECT_EQ(times, 1);
		}
}

// No engine has two commands: each queue of the paper is an engine's only one.
TEST(Latte, EnginesAreNotShared)
{
	for (auto w : {Way::pcpy, Way::pair, Way::b2b}) {
		std::map<std::pair<unsigned, unsigned>, int> used;
		for (const Command &cmd : latte_commands(Collective::all_gather, w)) {
			EXPECT_GE(cmd.engine, 2u);
			EXPECT_LT(cmd.engine, 16u);
			int times = ++used[{cmd.gpu, cmd.engine}];
			EXPECT_EQ(times, 1);
		}
	}
}

// b2b by hand, 8000 bytes in all, 1000 a copy: a submission has 8 packets, 10 + 8 =
// 18, but doorbells are 30 apart: the last is rung at 18 + 7 * 30 = 228, has come at
// 258 and is fetched at 328; seven copies of 100 end at 1028, in memory 1228, synced
// 1528, seen 1531.
TEST(Latte, BackToBackByHand)
{
	Variant v{Collective::all_gather, Way::b2b, false};

	EXPECT_EQ(latte_time(v, 8000, simple()), 1531);
}

// Prelaunched: the last queue is fetched at 328 when its poll begins; the releases
// begin when the last doorbell is rung, 228, and are long over. 328 + 70 + 700 + 200 +
// 300 + 3 - 228. A submission has 9 packets then: 19, so all is one later and the same.
TEST(Latte, PrelaunchedByHand)
{
	Variant v{Collective::all_gather, Way::b2b, true};

	EXPECT_EQ(latte_time(v, 8000, simple()), 1373);
}

TEST(Latte, Phases)
{
	Phases p = copy_phases(1000, simple());

	EXPECT_EQ(p.control, 12);
	EXPECT_EQ(p.schedule, 100);
	EXPECT_EQ(p.copy, 300);
	EXPECT_EQ(p.sync, 300);
}

TEST(Paper, Winners)
{
	EXPECT_EQ(paper_winner(Collective::all_gather, 128 << 10), Way::b2b);
	EXPECT_EQ(paper_winner(Collective::all_gather, 256 << 10), Way::pair);
	EXPECT_EQ(paper_winner(Collective::all_gather, 1 << 20), Way::pcpy);
	EXPECT_EQ(paper_winner(Collective::all_to_all, 64 << 10), Way::pair);
	EXPECT_EQ(paper_winner(Collective::all_to_all, 4 << 20), Way::pcpy);
}

// The model does what docs/model.md says. A change of the model within these bounds has
// to change the page, too; one outside them has made the model worse.
TEST(Paper, Score)
{
	Machine m = mi300x().machine;

	EXPECT_EQ(score(Cells::fitted, m).cells, 35u);
	EXPECT_EQ(score(Cells::judge, m).cells, 10u);
	EXPECT_LT(score(Cells::fitted, m).rms, 0.10);
	EXPECT_LT(score(Cells::all, m).rms, 0.13);
}

TEST(Paper, WinnersOfTheModel)
{
	Machine m = mi300x().machine;
	int right = 0, all = 0;

	for (auto c : {Collective::all_gather, Collective::all_to_all})
		for (u64 size = 1 << 10; size <= 1 << 30; size *= 2) {
			all++;
			right += model_winner(c, size, m) == paper_winner(c, size);
		}
	EXPECT_GE(right * 10, all * 9) << right << " of " << all;
}

// The file has what the fit finds: none of the fitted parameters was moved by hand.
TEST(Paper, FitFindsNothingBetter)
{
	MachineFile f = mi300x();
	double before = score(Cells::fitted, f.machine).rms;

	EXPECT_NEAR(score(Cells::fitted, fit(f)).rms, before, 0.0005);
}

// docs/collectives.md shows what the model says: "sluice-model plot" draws it anew.
TEST(Report, ThePlotOfTheDocumentationIsTheModels)
{
	std::ifstream file(PLOT);
	std::ostringstream text;

	text << file.rdbuf();
	EXPECT_EQ(text.str(), speedup_plot(mi300x().machine));
}

TEST(Report, EveryTableSaysThatItIsAModel)
{
	Machine m = mi300x().machine;

	for (auto table : {cells_table, winners_table, phases_table})
		EXPECT_NE(table(m).find("\nMODEL: "), std::string::npos);
	EXPECT_NE(parameters_table(mi300x()).find("\nMODEL: "), std::string::npos);
}

} // namespace

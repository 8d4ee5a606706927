// SPDX-License-Identifier: MIT
// What libsluice chooses is near the best choice, by the model and by the paper.
#include "regret.hpp"

#include <gtest/gtest.h>

using namespace sluice::timing;

namespace {

void expect_at_most(double most, const std::vector<Regret> &all)
{
	for (const Regret &r : all)
		EXPECT_LE(r.value(), most)
			<< r.what << ": " << r.chosen << ", best " << r.best;
}

TEST(Regret, OfTheLibraryInThePapersCollectives)
{
	auto all = library_regrets(paper_exchanges(), mi300x().machine);

	EXPECT_EQ(all.size(), 2u * 2 * 2 * 21);
	expect_at_most(0.05, all);
}

TEST(Regret, OfTheLibraryInRandomShapes)
{
	expect_at_most(0.10, library_regrets(random_exchanges(500), mi300x().machine));
}

TEST(Regret, OfTheLibraryByThePapersOwnFigures)
{
	auto all = published_regrets();

	EXPECT_EQ(all.size(), 18u);
	expect_at_most(0.05, all);
}

// AUTO by its own numbers is AUTO, but for what it does not fan out below 1 MiB.
TEST(Regret, TheRuleIsTheKernels)
{
	constexpr sluice::emu::u64 KiB = 1024;
	std::vector<Copies> much;

	for (auto to : {Copies::To::peers, Copies::To::host})
		for (sluice::emu::u32 count : {256u, 300u, 1000u})
			for (auto bytes : {1 * KiB, 4 * KiB, 20 * KiB})
				much.push_back({to, count, bytes});
	auto kernel = kernel_regrets(much, mi300x().machine);
	auto rule = rule_regrets({4 * KiB, 128 * KiB}, much, mi300x().machine);
	for (std::size_t i = 0; i < much.size(); i++) {
		EXPECT_EQ(rule[i].chosen, kernel[i].chosen) << rule[i].what;
		EXPECT_EQ(rule[i].took, kernel[i].took) << rule[i].what;
	}
}

TEST(Regret, IsNeverBelowNothing)
{
	for (const Regret &r : kernel_regrets(random_copies(20), mi300x().machine))
		EXPECT_GE(r.value(), 0) << r.what;
}

} // namespace

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

static void expect_of_kernel(double at_most, double in_the_mean, const Machine &m)
{
	for (const auto &all :
	     {kernel_regrets(kv_copies(), m), kernel_regrets(random_copies(500), m)}) {
		EXPECT_LE(mean(all), in_the_mean);
		expect_at_most(at_most, all);
	}
}

TEST(Regret, OfTheKernel)
{
	expect_of_kernel(0.10, 0.005, mi300x().machine);
}

TEST(Regret, OfTheKernelIfJobsCostTheHostNothing)
{
	Machine m = mi300x().machine;

	m.host_job = 0;
	expect_of_kernel(0.13, 0.025, m);
}

TEST(Regret, IsNeverBelowNothing)
{
	for (const Regret &r : kernel_regrets(random_copies(20), mi300x().machine))
		EXPECT_GE(r.value(), 0) << r.what;
}

} // namespace

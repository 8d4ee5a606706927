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

// Whether a job costs the host as much as is assumed, or nothing.
TEST(Regret, OfTheKernel)
{
	for (Time job : {mi300x().machine.host_job, 0.}) {
		Machine m = mi300x().machine;
		m.host_job = job;
		for (const auto &all : {kernel_regrets(kv_copies(), m),
					kernel_regrets(random_copies(500), m)}) {
			EXPECT_LE(mean(all), 0.02) << job;
			expect_at_most(0.13, all);
		}
	}
}

TEST(Regret, IsNeverBelowNothing)
{
	for (const Regret &r : kernel_regrets(random_copies(20), mi300x().machine))
		EXPECT_GE(r.value(), 0) << r.what;
}

} // namespace

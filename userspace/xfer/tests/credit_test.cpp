// SPDX-License-Identifier: MIT
// The two accounts against each other, with a wire in between whose delays
// are drawn at random: every promise of credit.hpp is checked at each step.
#include <deque>
#include <random>

#include <gtest/gtest.h>

#include "xfer/credit.hpp"

using namespace xfer;

TEST(CreditAccount, SpendsWhatItHas)
{
	CreditAccount account(2);

	EXPECT_TRUE(account.spend());
	EXPECT_TRUE(account.spend());
	EXPECT_FALSE(account.spend());
	EXPECT_EQ(account.available(), 0u);
}

TEST(CreditAccount, TakesTotals)
{
	CreditAccount account(4);

	for (int i = 0; i < 4; i++)
		account.spend();
	ASSERT_TRUE(account.take(6));
	EXPECT_EQ(account.available(), 2u);
	ASSERT_TRUE(account.take(6));	// says nothing new
	EXPECT_EQ(account.available(), 2u);
}

TEST(CreditAccount, RefusesMoreThanThereIs)
{
	CreditAccount account(4);

	EXPECT_EQ(account.take(5).error().code(), errc::protocol);
	account.spend();
	EXPECT_TRUE(account.take(5));
	EXPECT_FALSE(account.take(6));
	EXPECT_FALSE(account.take(4));	// backwards
	EXPECT_EQ(account.available(), 4u);
}

TEST(CreditReturn, WaitsForABatch)
{
	CreditReturn credits(16, 5);

	for (int i = 0; i < 3; i++) {
		credits.reposted();
		EXPECT_FALSE(credits.message());
	}
	credits.reposted();
	EXPECT_EQ(credits.message(), 20u);
	EXPECT_FALSE(credits.message());
}

TEST(CreditReturn, WaitsForRoom)
{
	CreditReturn credits(4, 1);

	credits.reposted();
	EXPECT_EQ(credits.message(), 5u);
	credits.reposted();
	credits.reposted();
	EXPECT_FALSE(credits.message());
	credits.sent();
	EXPECT_EQ(credits.message(), 7u);	// carries both
}

TEST(Credit, ReceivesForMessages)
{
	EXPECT_EQ(credit_receives(1), 1u);
	EXPECT_EQ(credit_receives(3), 3u);
	EXPECT_EQ(credit_receives(16), 4u);
	for (uint32_t depth = 1; depth <= max_credits; depth++)
		ASSERT_LE(credit_receives(depth), 7u) << depth;
}

namespace {

// Both programs and the wire. Each part moves when the random numbers say so.
class World {
public:
	World(uint32_t depth, uint32_t send_depth, uint32_t room, unsigned seed)
		: random_(seed), account_(depth), back_(depth, room),
		  send_depth_(send_depth), room_(room), receives_(depth),
		  credit_receives_(credit_receives(depth)) {}

	bool run(unsigned chunks)
	{
		for (unsigned idle = 0; taken_ < chunks; idle++) {
			bool moved = step(chunks);

			if (::testing::Test::HasFailure())
				return false;
			idle = moved ? 0 : idle;
			if (idle > 1000)
				return false;	// deadlock
		}
		return true;
	}

private:
	bool step(unsigned chunks)
	{
		switch (random_() % 6) {
		case 0: return write(chunks);
		case 1: return arrive();
		case 2: return receive();
		case 3: return message_arrives();
		case 4: return take();
		default: return message_acknowledged();
		}
	}

	bool write(unsigned chunks)
	{
		if (written_ == chunks || wire_ == send_depth_ ||
		    !account_.spend())
			return false;
		written_++;
		wire_++;
		return true;
	}

	bool arrive()
	{
		if (!wire_)
			return false;
		wire_--;
		EXPECT_GT(receives_, 0u) << "receiver not ready";
		receives_--;
		consumed_++;
		return true;
	}

	bool receive()
	{
		if (!consumed_)
			return say();
		consumed_--;
		taken_++;
		receives_++;
		back_.reposted();
		say();
		return true;
	}

	bool say()
	{
		auto total = back_.message();

		if (!total)
			return false;
		EXPECT_LE(back_.under_way(), room_) << "send queue overflow";
		messages_.push_back(*total);
		return true;
	}

	bool message_arrives()
	{
		if (messages_.empty())
			return false;
		EXPECT_GT(credit_receives_, 0u) << "sender not ready";
		credit_receives_--;
		here_.push_back(messages_.front());
		messages_.pop_front();
		unacknowledged_++;
		return true;
	}

	bool take()
	{
		if (here_.empty())
			return false;
		credit_receives_++;
		EXPECT_TRUE(account_.take(here_.front()));
		here_.pop_front();
		return true;
	}

	bool message_acknowledged()
	{
		if (!unacknowledged_)
			return false;
		unacknowledged_--;
		back_.sent();
		return true;
	}

	std::mt19937 random_;
	CreditAccount account_;
	CreditReturn back_;
	uint32_t send_depth_, room_;
	uint32_t receives_, credit_receives_;
	uint32_t wire_ = 0, consumed_ = 0, unacknowledged_ = 0;
	unsigned written_ = 0, taken_ = 0;
	std::deque<uint32_t> messages_, here_;
};

} // namespace

TEST(Credit, NothingIsLostAndNothingStops)
{
	for (uint32_t depth : {1u, 2u, 3u, 4u, 5u, 7u, 16u, 33u})
		for (uint32_t send_depth : {1u, 4u, 64u})
			for (uint32_t room : {1u, credit_receives(depth) + 1})
				for (unsigned seed = 0; seed < 20; seed++) {
					World world(depth, send_depth, room, seed);
					ASSERT_TRUE(world.run(300))
						<< depth << " " << send_depth
						<< " " << room << " " << seed;
				}
}

// The totals are modulo 2^32: nothing changes when they wrap.
TEST(Credit, TotalsWrap)
{
	CreditAccount account(4);
	uint32_t total = 4;

	// Only the differences matter, so get near the end in big steps.
	for (uint64_t i = 0; i < (uint64_t{1} << 32) / 4; i += 1 << 20) {
		for (int j = 0; j < 4; j++)
			ASSERT_TRUE(account.spend());
		total += 4;
		ASSERT_TRUE(account.take(total));
	}
	CreditAccount near(4);
	CreditReturn back(4, 8);
	for (int i = 0; i < 100; i++) {
		ASSERT_TRUE(near.spend());
		back.reposted();
		ASSERT_TRUE(near.take(*back.message()));
		back.sent();
	}
	EXPECT_EQ(near.available(), 4u);
}

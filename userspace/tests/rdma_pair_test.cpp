// SPDX-License-Identifier: MIT
// Both ends of a connection in one process, over one card: shapes on which the two must
// agree, and requests for which their context has no room.
#include "rdma_fixture.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include "base_kernel.hpp"
#include "hang_up.hpp"
#include "sluice/unique_fd.hpp"
#include "stream_wire.hpp"

using namespace rdma_tests;

namespace {

struct PairTest : RdmaTest {
	// One process is both ends: if one is silent, the machine is slow.
	PairTest() { silence = 60s; }

	void pair(endpoint_options of_listener = {}, endpoint_options of_client = {})
	{
		listen(of_listener);
		of_client.token = token;
		auto made = endpoint::connect(*ring, *card, address_a, door->port(),
					      with_silence(of_client), after(20s));
		ASSERT_TRUE(made) << made.error().message();
		from = std::make_unique<endpoint>(std::move(*made));
		to = std::make_unique<endpoint>(accept());
	}

	buffer noise(size_t size)
	{
		auto memory = *buffer::host(size);

		fill(memory.bytes().first(size), 7);
		return memory;
	}
	static stream_source source_of(const buffer &memory, size_t size)
	{
		return {.name = "noise",
			.file = -1,
			.from = {memory.part(0, size)},
			.size = 0};
	}

	using outcome = std::optional<result<stream_report>>;

	/// The result of each end.
	std::pair<outcome, outcome> move(stream_source source, stream_sink sink,
					 const stream_options &sends,
					 const stream_options &receives)
	{
		auto out = *sender::make(*ring, *from, *card, sends);
		auto in = *receiver::make(*ring, *to, *card, receives);
		auto sending = out.send(std::move(source));
		auto hearing = in.next();
		auto offer = within(20s, hearing);

		if (!offer || !*offer || !**offer)
			return {within(20s, sending), outcome()};
		auto receiving = in.receive(std::move(sink));
		auto received = within(60s, receiving);
		return {within(20s, sending), std::move(received)};
	}

	/// Memory arrives in memory.
	void arrives(size_t size, const stream_options &sends,
		     const stream_options &receives)
	{
		auto memory = noise(size), there = *buffer::host(size);
		auto [sent, received] =
			move(source_of(memory, size),
			     {.file = -1, .to = {there.part(0, size)}, .have = 0},
			     sends, receives);

		ASSERT_TRUE(sent && received) << "it hangs";
		ASSERT_TRUE(*sent) << sent->error().message();
		ASSERT_TRUE(*received) << received->error().message();
		EXPECT_TRUE(std::ranges::equal(memory.bytes().first(size),
					       there.bytes().first(size)));
	}

	/// It arrives from its beginning in a file that has a part of something else.
	void begins_anew(stream_source source, const buffer &data, size_t size)
	{
		unique_fd file(::memfd_create("sink", MFD_CLOEXEC));
		std::vector<std::byte> got(size);

		ASSERT_EQ(::ftruncate(file.get(), page_size), 0);
		auto [sent, received] =
			move(std::move(source),
			     {.file = file.get(), .to = {}, .have = page_size},
			     small_stream, small_stream);
		ASSERT_TRUE(sent && received) << "it hangs";
		ASSERT_TRUE(*sent) << sent->error().message();
		ASSERT_TRUE(*received) << received->error().message();
		EXPECT_EQ((*received)->resumed, 0u);
		EXPECT_EQ(::pread(file.get(), got.data(), size, 0),
			  static_cast<ssize_t>(size));
		EXPECT_TRUE(std::ranges::equal(got, data.bytes().first(size)));
	}

	/// So much that the card gets it in parts, and a target of the same size.
	struct large_memory {
		buffer here, there;
		registration local, peers;

		remote_memory remote_here() const
		{
			return {here.address(), here.size(), local.remote_key()};
		}
		remote_memory remote_there() const
		{
			return {there.address(), there.size(), peers.remote_key()};
		}
	};
	/// Such memory, with the two ends connected.
	large_memory large()
	{
		auto here = noise(256 << 20), there = *buffer::host(here.size());
		auto local = card->register_memory(here, remote::read).value();
		auto peers = card->register_memory(there, remote::write).value();

		pair();
		return {std::move(here), std::move(there), std::move(local),
			std::move(peers)};
	}

	/// Part of it has gone to the card, or not.
	void cancel_twice(operation transfer)
	{
		(void)ring->run_once(after(100ms));
		transfer.cancel();
		transfer.cancel();
		auto end = transfer.wait_until(after(60s));
		ASSERT_FALSE(end);
		EXPECT_EQ(end.error().code(), errc::cancelled) << end.error().message();
	}

	/// The transfer has ended before all of @p of was there.
	void went_no_further(large_memory &of)
	{
		const size_t last = of.here.size() - 1;

		EXPECT_EQ(of.there.bytes().back(), std::byte{});
		// Nothing moves any more.
		std::ranges::fill(of.there.bytes(), std::byte{0x55});
		while (ring->run_once(after(500ms)).value_or(0))
			;
		EXPECT_EQ(std::ranges::count(of.there.bytes(), std::byte{0x55}),
			  std::ssize(of.there.bytes()));
		// The connection still works.
		auto written = from->write(of.here.part(last, 1), of.local,
					   of.remote_there(), last);
		EXPECT_EQ(written.wait_until(after(20s)), 1u);
		EXPECT_EQ(of.there.bytes().back(), of.here.bytes().back());
	}

	// The sender, message by message.

	/// @p with sends a message. The other end does nothing in the meantime.
	static bool say(endpoint &with, const wire::bytes &m)
	{
		return with.send(m.span()).wait_until(after(20s)).has_value();
	}
	/// @p with receives a message; the result points into `message`.
	template <class Decode> auto hear(endpoint &with, Decode decode)
	{
		auto came = with.receive(message);

		for (auto until = after(20s); !came.poll() && clock::now() < until;)
			(void)ring->run_once(after(10ms));
		return decode(std::span<const std::byte>(message).first(
			came.wait_until(after(1s)).value_or(0)));
	}
	/// @p with offers a page, and the receiver gets the offer.
	void offer_page(endpoint &with, receiver &in)
	{
		auto hearing = in.next();

		ASSERT_TRUE(
			say(with, wire::encode(wire::open_message{.size = page_size,
								  .piece = page_size,
								  .chunk = page_size,
								  .checksum = false,
								  .digest = false,
								  .name = "one"})));
		auto offer = within(20s, hearing);
		ASSERT_TRUE(offer && *offer && **offer);
	}
	static bool say_page(endpoint &with)
	{
		return say(with, wire::encode(wire::piece_message{.offset = 0,
								  .length = page_size,
								  .chunks = 0,
								  .crc = {}}));
	}
	static constexpr wire::end_message the_end{.size = page_size, .digest = {}};
	static bool say_end(endpoint &with) { return say(with, wire::encode(the_end)); }
	/// Send the page that was offered, and say @p last at once behind its end.
	void send_page(const wire::bytes &last)
	{
		auto memory = noise(page_size);
		auto local = card->register_memory(memory, remote::none);

		ASSERT_TRUE(hear(*from, wire::decode_accept));
		auto grant = hear(*from, wire::decode_grant);
		ASSERT_TRUE(grant);
		auto written = from->write(memory.part(0, page_size), *local,
					   grant->memory, 0);
		EXPECT_TRUE(say_page(*from));
		EXPECT_TRUE(written.wait_until(after(20s)));
		auto end = from->send(wire::encode(the_end).span());
		EXPECT_TRUE(say(*from, last));
		EXPECT_TRUE(end.wait_until(after(20s)));
	}
	/// The granted memory is out of reach.
	void may_not_write(const remote_memory &there)
	{
		auto memory = noise(page_size);
		auto local = card->register_memory(memory, remote::none);
		auto written = from->write(memory.part(0, page_size), *local, there, 0);
		for (auto until = after(20s); !written.poll() && clock::now() < until;)
			(void)ring->run_once(after(10ms));
		auto end = written.wait_until(after(1s));
		ASSERT_FALSE(end) << "it can still write";
		EXPECT_EQ(end.error().code(), errc::denied) << end.error().message();
	}

	std::array<std::byte, max_message> message;

	/// Requires that pieces stay in the memory of @p gpu.
	static stream_options in_place(device &gpu)
	{
		auto options = small_stream;

		options.gpu = &gpu;
		options.require = data_path::device_alias;
		return options;
	}

	static void is_error(errc code, const outcome &end)
	{
		ASSERT_TRUE(end) << "it hangs";
		ASSERT_FALSE(*end);
		EXPECT_EQ(end->error().code(), code) << end->error().message();
	}

	void has_no_more(clock::duration limit,
			 task<result<std::optional<stream_offer>>> &hearing)
	{
		auto none = within(limit, hearing);

		ASSERT_TRUE(none && *none) << "it hangs, or failed";
		EXPECT_FALSE(**none);
	}

	std::unique_ptr<endpoint> from, to;
};

void is_usage(const auto &made)
{
	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().code(), errc::usage) << made.error().message();
}

} // namespace

TEST_F(PairTest, PiecesAreWholeChunksOfTheSenders)
{
	constexpr size_t mib = 1 << 20;

	pair();
	arrives(7 * mib, {.piece = 3 * mib, .chunk = 2 * mib, .require = {}},
		{.piece = 4 * mib, .require = {}});
}

TEST_F(PairTest, ManyPiecesAndFewMessages)
{
	auto many = small_stream;

	many.pieces = 64;
	pair({}, {.messages = 1});
	arrives(256 * page_size, many, many);
}

TEST_F(PairTest, APipeIsNotResumed)
{
	auto data = noise(2 * page_size);
	int ends[2];

	pair();
	ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	unique_fd out(ends[0]), in(ends[1]);
	ASSERT_EQ(::write(in.get(), data.data(), 2 * page_size),
		  static_cast<ssize_t>(2 * page_size));
	in = {};
	begins_anew({.name = "pipe",
		     .file = out.get(),
		     .from = {},
		     .size = stream_source::unknown},
		    data, 2 * page_size);
}

TEST_F(PairTest, MemoryIsNotResumed)
{
	auto data = noise(2 * page_size);

	pair();
	begins_anew(source_of(data, 2 * page_size), data, 2 * page_size);
}

TEST_F(PairTest, AnOfferWaitsForTheNextNext)
{
	pair();
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	{
		auto hearing = in.next();
		EXPECT_FALSE(hearing.done());
		ASSERT_TRUE(
			say(*from, wire::encode(wire::open_message{.size = page_size,
								   .piece = page_size,
								   .chunk = page_size,
								   .checksum = false,
								   .digest = false,
								   .name = "one"})));
	}
	// It is the same until it is taken or refused.
	for (int i = 0; i < 2; i++) {
		auto hearing = in.next();
		auto offer = within(20s, hearing);
		ASSERT_TRUE(offer) << "it is lost";
		ASSERT_TRUE(*offer && **offer);
		EXPECT_EQ((**offer)->name, "one");
	}
}

TEST_F(PairTest, OnlyAFileThatCanBeReadAgainIsComplete)
{
	auto data = noise(page_size);
	auto memory = noise(page_size);
	unique_fd file(::memfd_create("sink", MFD_CLOEXEC));

	ASSERT_EQ(::ftruncate(file.get(), page_size), 0);
	for (bool in_order : {true, false}) {
		pair();
		stream_sink sink{.file = in_order ? file.get() : -1,
				 .to = {},
				 .have = page_size,
				 .complete = true,
				 .in_order = in_order};
		if (!in_order)
			sink.to = {memory};
		auto [sent, received] =
			move(source_of(data, page_size), std::move(sink), small_stream,
			     small_stream);
		ASSERT_TRUE(sent && received) << "it hangs";
		ASSERT_FALSE(*received);
		EXPECT_EQ(received->error().code(), errc::usage)
			<< received->error().message();
		EXPECT_EQ(sent->error().code(), errc::peer_error);
	}
}

TEST_F(PairTest, WithoutAnOfferNothingIsReceived)
{
	auto memory = noise(page_size);

	pair();
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	auto receiving = in.receive({.file = -1, .to = {memory}, .have = 0});
	is_usage(receiving.run(*ring));
	auto refusing = in.refuse("why not");
	is_usage(refusing.run(*ring));
}

// A broken transfer may have left bytes behind its beginning.
TEST_F(PairTest, AFileEndsWhereTheOfferEnds)
{
	auto data = noise(page_size);

	pair();
	for (size_t size : {size_t{100}, size_t{0}}) {
		unique_fd file(::memfd_create("sink", MFD_CLOEXEC));
		struct stat st{};

		ASSERT_EQ(::ftruncate(file.get(), 2 * page_size), 0);
		auto [sent, received] =
			move(source_of(data, size), {.file = file.get(), .to = {}},
			     small_stream, small_stream);
		ASSERT_TRUE(sent && received) << "it hangs";
		ASSERT_TRUE(*received) << received->error().message();
		ASSERT_EQ(::fstat(file.get(), &st), 0);
		EXPECT_EQ(st.st_size, static_cast<off_t>(size));
	}
}

TEST_F(PairTest, NamesAreThoseOfFiles)
{
	auto memory = noise(page_size);

	pair();
	auto out = *sender::make(*ring, *from, *card, small_stream);
	for (const char *name : {"", "a/b", "..", "a\nb"}) {
		auto source = source_of(memory, page_size);
		source.name = name;
		auto sending = out.send(std::move(source));
		is_usage(sending.run(*ring));
	}
	// The other end was not told any of this.
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	auto source = source_of(memory, page_size);
	source.name = "données";
	auto sending = out.send(std::move(source));
	auto hearing = in.next();
	auto offer = within(20s, hearing);
	ASSERT_TRUE(offer && *offer && **offer);
	EXPECT_EQ((**offer)->name, "données");
}

TEST_F(PairTest, StreamsNeedRoomInTheirContext)
{
	stream_options many = {
		.piece = 512 << 10, .chunk = page_size, .pieces = 16, .require = {}};
	auto other = *context::open();
	auto other_card = *nic::open(other, card_a);

	pair();
	is_usage(sender::make(*ring, *from, *card, {.require = {}, .patience = 0s}));
	is_usage(sender::make(*ring, *from, *card, many));
	EXPECT_TRUE(receiver::make(*ring, *to, *card, many));
	is_usage(sender::make(*ring, *from, other_card, small_stream));
	is_usage(receiver::make(*ring, *to, other_card, small_stream));
}

// Whatever fills the context: the stream ends, and does not wait forever.
TEST_F(PairTest, AStreamEndsWhereOthersFillTheContext)
{
	auto memory = noise(streamed);
	std::vector<operation> others;

	for (unsigned left : {1, 2}) {
		SCOPED_TRACE(left);
		pair();
		auto out = *sender::make(*ring, *from, *card, small_stream);

		while (others.size() < context::options().operations - left)
			others.push_back(ring->sleep_until(after(1h)));
		auto sending = out.send(source_of(memory, streamed));
		auto sent = within(15s, sending);
		ASSERT_TRUE(sent) << "it hangs";
		ASSERT_FALSE(*sent);
		EXPECT_TRUE(sent->error().code() == errc::busy ||
			    sent->error().code() == errc::cancelled)
			<< sent->error().message();
		others.clear();
	}
}

// The card gets them in parts.
TEST_F(PairTest, LargeTransfersAreWhole)
{
	constexpr size_t size = (40 << 20) + 4097;
	auto memory = noise(size + 3), there = *buffer::host(size + 5),
	     back = *buffer::host(size + 7);
	auto local = card->register_memory(memory, remote::none),
	     peers = card->register_memory(there, remote::read | remote::write),
	     mine = card->register_memory(back, remote::none);
	std::byte byte{};

	ASSERT_TRUE(local && peers && mine);
	pair();
	remote_memory at{there.address(), there.size(), peers->remote_key()};
	auto written = from->write(memory.part(3, size), *local, at, 5);
	auto said = from->send({&byte, 1});
	// The message comes after the data.
	ASSERT_TRUE(to->receive({&byte, 1}).wait_until(after(60s)));
	EXPECT_TRUE(std::ranges::equal(memory.bytes().subspan(3, size),
				       there.bytes().subspan(5, size)));
	EXPECT_EQ(written.wait_until(after(60s)), size);
	EXPECT_TRUE(said.wait_until(after(60s)));
	auto read = from->read(back.part(7, size), *mine, at, 5);
	EXPECT_EQ(read.wait_until(after(60s)), size);
	EXPECT_TRUE(std::ranges::equal(memory.bytes().subspan(3, size),
				       back.bytes().subspan(7, size)));
}

// The card never gets what it does not have yet.
TEST_F(PairTest, ALargeWriteIsCancelled)
{
	auto of = large();

	cancel_twice(from->write(of.here, of.local, of.remote_there(), 0));
	went_no_further(of);
}

TEST_F(PairTest, ALargeReadIsCancelled)
{
	auto of = large();

	cancel_twice(from->read(of.there, of.peers, of.remote_here(), 0));
	went_no_further(of);
}

// Its destructor waits for what the card has.
TEST_F(PairTest, ALargeWriteIsDestroyed)
{
	auto of = large();

	{
		auto written = from->write(of.here, of.local, of.remote_there(), 0);
		(void)ring->run_once(after(100ms));
	}
	went_no_further(of);
}

// The card had a part of it, and never gets the rest.
TEST_F(PairTest, ALargeWriteEndsOnceIfItsPeerGoes)
{
	auto both = large();
	auto written = [](operation of) -> task<result<size_t>> {
		co_return co_await of;
	}(from->write(both.here, both.local, both.remote_there(), 0));
	(void)ring->run_once(after(100ms));
	to.reset();
	auto end = within(60s, written);
	ASSERT_TRUE(end);
	ASSERT_FALSE(*end);
	EXPECT_EQ(end->error().code(), errc::peer_lost) << end->error().message();
	EXPECT_TRUE(ring->sleep_until(after(1ms)).wait());
}

// If the receiver left first, the message that tells the sender that all has arrived might
// be lost.
TEST_F(PairTest, AReceiverGoesWhenTheSenderHasGone)
{
	pair();
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	auto hearing = in.next();

	EXPECT_TRUE(from->send(wire::encode_finish().span()).wait_until(after(20s)));
	EXPECT_FALSE(within(500ms, hearing));
	from.reset();
	has_no_more(10s, hearing);
}

TEST_F(PairTest, ASenderThatStaysHoldsUpNoReceiver)
{
	auto hurried = small_stream;

	hurried.patience = 1s;
	pair();
	auto in = *receiver::make(*ring, *to, *card, hurried);
	auto hearing = in.next();

	EXPECT_TRUE(from->send(wire::encode_finish().span()).wait_until(after(20s)));
	has_no_more(10s, hearing);
}

TEST_F(PairTest, ASenderThatHasFinishedHasGone)
{
	std::byte byte{};

	pair();
	auto out = *sender::make(*ring, *from, *card, small_stream);
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	auto finishing = out.finish();
	auto finished = within(20s, finishing);
	ASSERT_TRUE(finished && *finished);
	auto hearing = in.next();
	has_no_more(20s, hearing);
	auto after_that = from->send({&byte, 1}).wait();
	ASSERT_FALSE(after_that);
	EXPECT_EQ(after_that.error().code(), errc::usage);
}

// It has received DONE, as it went on; its card's acknowledgement need not arrive.
TEST_F(PairTest, ASenderMayGoBeforeDoneIsAcknowledged)
{
	unique_fd file(::memfd_create("sink", MFD_CLOEXEC));

	pair();
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	ASSERT_NO_FATAL_FAILURE(offer_page(*from, in));
	auto receiving = in.receive({.file = file.get(), .to = {}});
	ASSERT_NO_FATAL_FAILURE(send_page(wire::encode_finish()));
	from.reset();
	auto received = within(20s, receiving);
	ASSERT_TRUE(received);
	EXPECT_TRUE(*received) << received->error().message();
	auto ending = in.next();
	has_no_more(20s, ending);
}

// Whether it stays or goes.
TEST_F(PairTest, ASenderThatGaveUpBehindItsEndIsHeard)
{
	for (bool goes : {false, true}) {
		unique_fd file(::memfd_create("sink", MFD_CLOEXEC));

		pair();
		auto in = *receiver::make(*ring, *to, *card, small_stream);
		ASSERT_NO_FATAL_FAILURE(offer_page(*from, in));
		auto receiving = in.receive({.file = file.get(), .to = {}});
		ASSERT_NO_FATAL_FAILURE(
			send_page(wire::encode_text(wire::type::failed, "too slow")));
		if (goes)
			from.reset();
		auto received = within(20s, receiving);
		ASSERT_TRUE(received);
		ASSERT_FALSE(*received);
		EXPECT_EQ(received->error().code(), errc::peer_error)
			<< received->error().message();
		EXPECT_TRUE(received->error().message().contains("too slow"));
	}
}

// The receiver is held up by its file after it has checked the piece.
TEST_F(PairTest, APieceThatCameCannotBeChanged)
{
	full_pipe sink;

	ASSERT_NO_FATAL_FAILURE(sink.open());
	pair();
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	ASSERT_NO_FATAL_FAILURE(offer_page(*from, in));
	auto receiving = in.receive({.file = sink.in.get(), .to = {}});
	ASSERT_TRUE(hear(*from, wire::decode_accept));
	auto grant = hear(*from, wire::decode_grant);
	ASSERT_TRUE(grant);
	EXPECT_TRUE(say_page(*from));
	EXPECT_FALSE(within(500ms, receiving)) << "the pipe does not hold it up";
	may_not_write(grant->memory);
}

TEST_F(PairTest, AGrantThatIsLeftOverEndsWithTheStream)
{
	auto there = *buffer::host(page_size);

	pair();
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	ASSERT_NO_FATAL_FAILURE(offer_page(*from, in));
	auto receiving = in.receive({.file = -1, .to = {there.part(0, page_size)}});
	ASSERT_TRUE(hear(*from, wire::decode_accept));
	auto used = hear(*from, wire::decode_grant);
	ASSERT_TRUE(used);
	EXPECT_TRUE(say_page(*from));
	auto left = hear(*from, wire::decode_grant);
	ASSERT_TRUE(left);
	EXPECT_TRUE(say_end(*from));
	auto received = within(20s, receiving);
	ASSERT_TRUE(received && *received);
	may_not_write(left->memory);
}

// The required path is checked before the peer is told that all is done.
TEST_F(PairTest, WhatLeftTheRequiredPathIsNotDone)
{
	WANTS_BATCHES();
	if (list_devices().empty())
		GTEST_SKIP() << "no GPU";
	auto gpu = *device::open(*ring, "0");
	auto moves = *gpu.svm(page_size), there = *buffer::host(page_size);

	pair();
	auto in = *receiver::make(*ring, *to, *card, in_place(gpu));
	ASSERT_NO_FATAL_FAILURE(offer_page(*from, in));
	auto receiving = in.receive({.file = -1, .to = {there.part(0, page_size)}});
	ASSERT_TRUE(hear(*from, wire::decode_accept));
	moves.bytes()[0] = std::byte{1};
	ASSERT_TRUE(hear(*from, wire::decode_grant));
	EXPECT_TRUE(say_page(*from));
	EXPECT_TRUE(say_end(*from));
	is_error(errc::no_path, within(20s, receiving));
	auto said = hear(*from, wire::type_of);
	while (said == wire::type::grant || said == wire::type::ack)
		said = hear(*from, wire::type_of);
	EXPECT_EQ(said, wire::type::failed);
}

TEST_F(PairTest, WhatLeftTheRequiredPathIsNotSent)
{
	WANTS_BATCHES();
	if (list_devices().empty())
		GTEST_SKIP() << "no GPU";
	auto gpu = *device::open(*ring, "0");
	auto data = noise(page_size), moves = *gpu.svm(page_size);
	unique_fd sink(::memfd_create("sink", MFD_CLOEXEC));
	int ends[2];

	pair();
	ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	unique_fd source(ends[0]), writes(ends[1]);
	auto out = *sender::make(*ring, *from, *card, in_place(gpu));
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	auto sending = out.send({.name = "pipe", .file = source.get(), .from = {}});
	auto hearing = in.next();
	auto offer = within(20s, hearing);
	ASSERT_TRUE(offer && *offer && **offer);
	auto receiving = in.receive({.file = sink.get(), .to = {}});
	ASSERT_EQ(::write(writes.get(), data.data(), page_size),
		  static_cast<ssize_t>(page_size));
	std::byte first{};
	for (auto until = after(20s);
	     ::pread(sink.get(), &first, 1, 0) == 0 && clock::now() < until;)
		(void)ring->run_once(after(10ms));
	ASSERT_EQ(::pread(sink.get(), &first, 1, 0), 1);
	moves.bytes()[0] = std::byte{1};
	writes = {};
	is_error(errc::no_path, within(20s, sending));
	is_error(errc::peer_error, within(20s, receiving));
}

// For example for a file that has yet to be renamed.
TEST_F(PairTest, ASenderIsToldWhenTheReceiverConfirms)
{
	auto memory = noise(page_size), there = *buffer::host(page_size);

	pair();
	auto out = *sender::make(*ring, *from, *card, small_stream);
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	for (bool well : {true, false}) {
		auto sending = out.send(source_of(memory, page_size));
		auto hearing = in.next();
		auto offer = within(20s, hearing);
		ASSERT_TRUE(offer && *offer && **offer);
		auto receiving = in.receive({.file = -1,
					     .to = {there.part(0, page_size)},
					     .have = 0,
					     .in_order = false,
					     .confirm = true});
		auto received = within(20s, receiving);
		ASSERT_TRUE(received && *received);
		EXPECT_FALSE(within(500ms, sending)) << "it is told already";
		auto telling =
			well ? in.confirm()
			     : in.give_up({errc::output, "file", "it has no name"});
		ASSERT_TRUE(within(20s, telling));
		auto sent = within(20s, sending);
		ASSERT_TRUE(sent);
		EXPECT_EQ(sent->has_value(), well);
		if (!well) {
			EXPECT_NE(sent->error().message().find("it has no name"),
				  std::string_view::npos)
				<< sent->error().message();
		}
	}
	auto nothing = in.confirm();
	is_usage(nothing.run(*ring));
}

// In between, the sender may have run out of patience.
TEST_F(PairTest, WhatASenderGaveUpIsNotConfirmed)
{
	auto there = *buffer::host(page_size);

	pair();
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	ASSERT_NO_FATAL_FAILURE(offer_page(*from, in));
	auto receiving = in.receive({.file = -1,
				     .to = {there.part(0, page_size)},
				     .have = 0,
				     .in_order = false,
				     .confirm = true});
	ASSERT_TRUE(hear(*from, wire::decode_accept));
	ASSERT_TRUE(hear(*from, wire::decode_grant));
	EXPECT_TRUE(say_page(*from));
	EXPECT_TRUE(say_end(*from));
	auto received = within(20s, receiving);
	ASSERT_TRUE(received && *received);
	auto hearing = in.next();
	is_usage(hearing.run(*ring));
	EXPECT_TRUE(say(*from, wire::encode_text(wire::type::failed, "too late")));
	(void)ring->run_once(after(100ms));
	auto confirming = in.confirm();
	auto confirmed = within(20s, confirming);
	ASSERT_TRUE(confirmed);
	ASSERT_FALSE(*confirmed);
	EXPECT_EQ(confirmed->error().code(), errc::peer_error);
}

// Everything before that position stays, and none of it is resumed.
TEST_F(PairTest, AFileMayBeWrittenFromItsPosition)
{
	auto data = noise(64 * page_size);
	std::vector<std::byte> got(65 * page_size);
	auto many = small_stream;

	many.pieces = 16;
	for (bool appends : {false, true}) {
		unique_fd file(::memfd_create("sink", MFD_CLOEXEC));

		SCOPED_TRACE(appends);
		pair();
		ASSERT_EQ(::ftruncate(file.get(), page_size), 0);
		ASSERT_EQ(::lseek(file.get(), appends ? 0 : page_size, SEEK_SET),
			  static_cast<off_t>(appends ? 0 : page_size));
		ASSERT_EQ(::fcntl(file.get(), F_SETFL, appends ? O_APPEND : 0), 0);
		auto [sent, received] = move(source_of(data, 64 * page_size),
					     {.file = file.get(),
					      .to = {},
					      .have = page_size,
					      .in_order = !appends},
					     many, many);
		ASSERT_TRUE(sent && received) << "it hangs";
		ASSERT_TRUE(*sent && *received);
		EXPECT_EQ((*received)->resumed, 0u);
		ASSERT_EQ(::pread(file.get(), got.data(), got.size(), 0),
			  std::ssize(got));
		EXPECT_TRUE(std::ranges::equal(std::span(got).subspan(page_size),
					       data.bytes()));
	}
}

TEST_F(PairTest, AFileWithoutAMediumIsNotSynced)
{
	auto data = noise(page_size);
	unique_fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));

	pair();
	auto [sent, received] =
		move(source_of(data, page_size), {.file = null.get(), .to = {}},
		     small_stream, small_stream);
	ASSERT_TRUE(sent && received) << "it hangs";
	EXPECT_TRUE(*sent) << sent->error().message();
	EXPECT_TRUE(*received) << received->error().message();
}

// The message that tells why an end gives up is not held up by earlier messages.
TEST_F(PairTest, WhatIsSentFirstFindsRoomInFront)
{
	const std::byte later{1}, first{2};
	std::vector<operation> under_way;
	size_t behind = 0;
	std::byte got{};

	pair();
	for (;;) {
		auto one = from->send({&later, 1});
		if (one.done())
			break;
		under_way.push_back(std::move(one));
	}
	(void)ring->run_once(after(100ms));
	auto urgent = detail::send_first(*from, {&first, 1});
	ASSERT_FALSE(urgent.done()) << "there is no room";
	for (size_t i = 0; i <= under_way.size(); i++) {
		ASSERT_TRUE(to->receive({&got, 1}).wait_until(after(20s)));
		behind = got == first ? 0 : behind + 1;
	}
	EXPECT_GE(behind, under_way.size() / 2);
	EXPECT_TRUE(urgent.wait_until(after(20s)));
}

TEST_F(PairTest, NothingIsDueWhenTheSenderHasFinished)
{
	std::byte byte{};

	pair();
	auto in = *receiver::make(*ring, *to, *card, small_stream);
	auto hearing = in.next();

	EXPECT_TRUE(from->send(wire::encode_finish().span()).wait_until(after(20s)));
	EXPECT_TRUE(from->send({&byte, 1}).wait_until(after(20s)));
	auto end = within(10s, hearing);
	ASSERT_TRUE(end);
	ASSERT_FALSE(*end);
	EXPECT_EQ(end->error().code(), errc::protocol) << end->error().message();
}

// A sign of life comes after the data that the card has.
TEST_F(PairTest, ALargeWriteIsNoSilence)
{
	constexpr size_t size = 512 << 20;
	auto memory = *buffer::host(size);
	auto local = card->register_memory(memory, remote::write);

	ASSERT_TRUE(local) << local.error().message();
	// The debug kernel takes 20 s for the 32 MiB in front of a sign of life.
	const int slow = is_slow() ? 15 : 1;
	silence = 4s * slow;
	pair();
	auto written =
		from->write(memory, *local,
			    {memory.address(), memory.size(), local->remote_key()}, 0);
	auto end = written.wait_until(after(120s * slow));
	auto there = to->alive();
	ASSERT_TRUE(end) << end.error().message() << "\n"
			 << (there ? "" : there.error().message());
	EXPECT_EQ(*end, size);
	EXPECT_TRUE(there);
}

// No event of the card would end the operation that waits.
TEST_F(PairTest, AMessageThatIsTooLongEndsAllAtOnce)
{
	std::byte two[2] = {}, one;

	pair({.messages = 1});
	ASSERT_TRUE(to->send(two).wait());
	ASSERT_TRUE(from->send(two).wait());
	auto waits = from->send(two);
	while (ring->run_once(after(100ms)).value_or(0))
		;
	EXPECT_EQ(from->receive({&one, 1}).wait().error().code(), errc::protocol);
	auto end = waits.wait_until(after(2s));
	ASSERT_FALSE(end);
	EXPECT_EQ(end.error().code(), errc::protocol) << end.error().message();
}

// SPDX-License-Identifier: MIT
// Streams with peers that break off, say nothing, or lie.
#include "base_kernel.hpp"
#include "rdma_fixture.hpp"

#include <random>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sluice/unique_fd.hpp"

using namespace rdma_tests;

namespace {

constexpr auto mark = std::byte{0xee};

/// A file of zeros.
unique_fd zeros(size_t size)
{
	unique_fd file(::memfd_create("zeros", MFD_CLOEXEC));

	EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
	return file;
}

struct StreamTest : RdmaTest {
	stream_options options(clock::duration patience = 5s)
	{
		auto o = small_stream;

		o.patience = patience;
		return o;
	}

	/// Memory of @p size bytes, filled with marks.
	buffer memory_of(size_t size)
	{
		auto memory = *buffer::host(size);

		std::ranges::fill(memory.bytes(), mark);
		return memory;
	}

	stream_source source_of(const buffer &memory)
	{
		return {.name = "source",
			.file = -1,
			.from = {memory.part(0, streamed)},
			.size = 0};
	}

	/// The result of the sending end of a stream with @p with.
	std::optional<result<stream_report>> send(endpoint &with)
	{
		auto memory = memory_of(streamed);
		auto out = *sender::make(*ring, with, *card, options());

		fill(memory.bytes().first(streamed), 1);
		auto running = out.send(source_of(memory));
		return within(15s, running);
	}

	/// The same for a source that takes a while to check.
	std::optional<result<stream_report>> send_much(const char *lie)
	{
		listen();
		process other({"hostile-stream", port(), lie});
		auto with = accept();
		auto out = *sender::make(*ring, with, *card, options());
		auto file = zeros(had + streamed);

		auto running = out.send({.name = "zeros",
					 .file = file.get(),
					 .from = {},
					 .size = had + streamed});
		auto end = within(is_slow() ? 360s : 60s, running);
		EXPECT_EQ(other.wait(*ring), 0);
		return end;
	}

	/// The result of a receiving end of a stream with @p with.
	std::optional<result<stream_report>> receive_into(endpoint &with,
							  stream_sink sink,
							  clock::duration limit,
							  clock::duration patience = 5s)
	{
		auto in = *receiver::make(*ring, with, *card, options(patience));

		auto hearing = in.next();
		auto offer = within(15s, hearing);
		if (!offer || !*offer)
			return offer ? std::optional<result<stream_report>>(
					       std::unexpected(offer->error()))
				     : std::nullopt;
		auto running = in.receive(std::move(sink));
		return within(limit, running);
	}

	/// The same for one that already has a part of the file.
	std::optional<result<stream_report>> resume_with(const char *lie)
	{
		listen();
		process other({"hostile-stream", port(), lie});
		auto with = accept();
		auto file = zeros(had);

		auto end = receive_into(
			with, {.file = file.get(), .to = {}, .have = had}, 60s);
		EXPECT_EQ(other.wait(*ring), 0);
		return end;
	}

	/// The same for one with memory. No byte is where it does not belong.
	std::optional<result<stream_report>> receive(endpoint &with,
						     clock::duration patience = 5s)
	{
		auto memory = memory_of(streamed), right = memory_of(streamed);

		fill(right.bytes().first(streamed), 1);
		auto end = receive_into(
			with, {.file = -1, .to = {memory.part(0, streamed)}, .have = 0},
			15s, patience);
		for (size_t i = 0; i < streamed; i++)
			if (memory.bytes()[i] != mark &&
			    memory.bytes()[i] != right.bytes()[i]) {
				ADD_FAILURE() << "the byte " << i << " is wrong";
				break;
			}
		return end;
	}
};

/// It ends with this error.
template <class T> void ends_in(const std::optional<result<T>> &end, errc code)
{
	ASSERT_TRUE(end) << "it hangs";
	ASSERT_FALSE(*end);
	EXPECT_EQ(end->error().code(), code) << end->error().message();
}

/// A lie, its target, and the error that it causes here. The liar is told, or our card
/// refuses its request: then it learns of that, or first of the end of the connection.
struct lie {
	const char *what;
	bool to_sender;
	errc ends_in;
	bool refused_by_card = false;
	bool stops = false; // when its messages have arrived

	bool may_end_with(int status) const
	{
		if (!refused_by_card)
			return status == 0;
		return status == exit_status(errc::denied) ||
		       status == exit_status(errc::peer_lost);
	}
};

// GoogleTest does not allow '-' in names.
std::string name_of(const ::testing::TestParamInfo<lie> &of)
{
	std::string name = of.param.what;

	std::ranges::replace(name, '-', '_');
	return name;
}

/// With a GPU, and memory of another GPU that it sees as a dma-buf.
struct DmabufTest : StreamTest {
	void SetUp() override
	{
		StreamTest::SetUp();
		if (!card)
			return;
		if (list_devices().size() < 2)
			GTEST_SKIP() << "no two GPUs";
		gpu.emplace(*device::open(*ring, "0"));
		owner.emplace(*device::open(*ring, "1"));
		own = *owner->vram(streamed);
		shown = *gpu->import_dmabuf(own.export_dmabuf()->get());
	}

	stream_options options_on_gpu()
	{
		auto o = options();

		o.gpu = &*gpu;
		return o;
	}

	// Soft RoCE takes no dma-bufs. Memory that it cannot reach in the GPU is staged.
	void is_true(const result<stream_report> &report)
	{
		ASSERT_TRUE(report) << report.error().message();
		EXPECT_EQ(report->bytes, streamed);
		EXPECT_EQ(report->path,
			  base_kernel() ? data_path::staged : data_path::device_alias);
		EXPECT_EQ(report->path_reason.find("takes no dma-bufs") !=
				  std::string::npos,
			  base_kernel())
			<< report->path_reason;
	}

	std::optional<device> gpu, owner;
	buffer own, shown;
};

struct StreamHostileTest : StreamTest, ::testing::WithParamInterface<lie> {};

} // namespace

TEST_P(StreamHostileTest, EndsAndTheListenerGoesOn)
{
	const lie &l = GetParam();
	listen();
	process other({"hostile-stream", port(), l.what});
	{
		auto with = accept();
		if (l.stops) {
			ASSERT_TRUE(other.resume());
		}
		auto end = l.to_sender ? send(with) : receive(with);

		ASSERT_TRUE(end) << "it hangs";
		ASSERT_FALSE(*end) << "it believes what it is told";
		EXPECT_EQ(end->error().code(), l.ends_in) << end->error().message();
		EXPECT_FALSE(with.alive()) << "the peer may hold messages up";
		int status = other.wait(*ring);
		EXPECT_TRUE(l.may_end_with(status)) << status;
	}
	works();
}

// The pipe takes the piece, and the sender gives up and leaves, before this process looks.
TEST_F(StreamTest, ASenderThatGaveUpIsHeardBeforeItIsGone)
{
	for (const char *liar : {"sends-one-and-gives-up", "ends-and-gives-up"}) {
		SCOPED_TRACE(liar);
		full_pipe sink;

		ASSERT_NO_FATAL_FAILURE(sink.open());
		listen();
		process other({"hostile-stream", port(), liar});
		auto with = accept();
		auto in = *receiver::make(*ring, with, *card, options());
		auto hearing = in.next();
		auto offer = within(15s, hearing);
		ASSERT_TRUE(offer && *offer);
		auto running = in.receive({.file = sink.in.get(), .to = {}, .have = 0});
		EXPECT_FALSE(within(1s, running)) << "the pipe does not hold it up";
		ASSERT_NO_FATAL_FAILURE(sink.drain());
		ASSERT_TRUE(other.resume());
		std::this_thread::sleep_for(1s);
		ends_in(within(10s, running), errc::peer_error);
	}
}

INSTANTIATE_TEST_SUITE_P(ToSender, StreamHostileTest,
			 ::testing::Values(lie{"grant-first", true, errc::protocol},
					   lie{"small-grant", true, errc::protocol},
					   lie{"many-grants", true, errc::protocol},
					   lie{"large-pieces", true, errc::protocol},
					   lie{"has-more", true, errc::protocol},
					   lie{"second-accept", true, errc::protocol},
					   lie{"late-refusal", true, errc::protocol},
					   lie{"early-ack", true, errc::protocol},
					   lie{"ack-goes-back", true, errc::protocol},
					   lie{"acks-nothing", true, errc::protocol},
					   lie{"acks-again", true, errc::protocol},
					   lie{"acks-a-byte", true, errc::protocol},
					   lie{"early-done", true, errc::protocol},
					   lie{"wrong-done", true, errc::corrupt},
					   lie{"no-message", true, errc::protocol},
					   lie{"busy-with-nothing", true,
					       errc::protocol},
					   lie{"busy-with-more", true, errc::protocol},
					   lie{"late-busy", true, errc::protocol},
					   lie{"gives-up", true, errc::peer_error}),
			 name_of);

INSTANTIATE_TEST_SUITE_P(
	ToReceiver, StreamHostileTest,
	::testing::Values(lie{"no-offer", false, errc::protocol},
			  lie{"too-much", false, errc::usage},
			  lie{"second-offer", false, errc::protocol},
			  lie{"early-finish", false, errc::protocol},
			  lie{"early-end", false, errc::protocol},
			  lie{"gap", false, errc::protocol},
			  lie{"long-piece", false, errc::protocol},
			  lie{"short-pieces", false, errc::protocol},
			  lie{"behind-the-end", false, errc::protocol},
			  lie{"no-crc", false, errc::protocol},
			  lie{"wrong-crc", false, errc::corrupt},
			  lie{"ungranted", false, errc::protocol, false, true},
			  lie{"write-behind-piece", false, errc::protocol, true},
			  lie{"busy-with-nothing-here", false, errc::protocol},
			  lie{"wrong-end", false, errc::corrupt}),
	name_of);

// A waiting peer is told: it gives up when it has been told twice.
TEST_F(StreamTest, ASenderSaysThatItLooksAtWhatIsThere)
{
	auto end = send_much("has-much");

	ASSERT_NO_FATAL_FAILURE(ends_in(end, errc::peer_error));
}

TEST_F(StreamTest, ASenderWaitsForAReceiverThatLooksAtWhatIsThere)
{
	auto end = send_much("slow-answer");

	ASSERT_NO_FATAL_FAILURE(ends_in(end, errc::peer_error));
}

// Otherwise the sender would wait for as long as the receiver says so.
TEST_F(StreamTest, AReceiverThatLooksAtNothingNewIsNotWaitedFor)
{
	for (const char *lie : {"busy-again", "busy-by-a-byte"}) {
		SCOPED_TRACE(lie);
		auto end = send_much(lie);
		ASSERT_NO_FATAL_FAILURE(ends_in(end, errc::protocol));
	}
}

TEST_F(StreamTest, AReceiverSaysThatItLooksAtWhatIsThere)
{
	auto end = resume_with("offers-to-resume");

	ASSERT_NO_FATAL_FAILURE(ends_in(end, errc::peer_error));
}

TEST_F(StreamTest, AReceiverWaitsForASenderThatLooksAtWhatIsThere)
{
	auto end = resume_with("slow-start");

	ASSERT_NO_FATAL_FAILURE(ends_in(end, errc::peer_error));
}

// What is granted and not used does not bring the stream forward. It goes on for 18 s.
TEST_F(StreamTest, GrantsThatAreNotUsedHoldUpNoSender)
{
	for (const char *lie : {"grants-behind-the-end", "takes-no-piece"}) {
		SCOPED_TRACE(lie);
		listen();
		process other({"hostile-stream", port(), lie});
		auto with = accept();
		auto memory = memory_of(streamed);
		auto out = *sender::make(*ring, with, *card, options(1s));

		auto running = out.send(source_of(memory));
		ASSERT_NO_FATAL_FAILURE(ends_in(within(12s, running), errc::timeout));
	}
}

TEST_F(StreamTest, APeerThatTakesNoMessageHoldsUpNoSender)
{
	listen();
	process other({"hostile", port(), "no-credits"});
	auto with = accept();
	auto memory = memory_of(streamed);
	auto out = *sender::make(*ring, with, *card, options(1s));
	auto start = clock::now();

	auto running = out.send(source_of(memory));
	auto end = within(10s, running);
	ASSERT_NO_FATAL_FAILURE(ends_in(end, errc::timeout));
	EXPECT_LT(clock::now() - start, 6s);
	EXPECT_EQ(other.wait(*ring), 0);
	works();
}

TEST_F(StreamTest, APeerThatTakesNoMessageHoldsUpNoEnd)
{
	listen();
	process other({"hostile", port(), "no-credits"});
	auto with = accept();
	auto out = *sender::make(*ring, with, *card, options(1s));

	// The only message that the peer takes.
	EXPECT_TRUE(with.send({}).wait());
	auto running = out.finish();
	auto end = within(10s, running);
	ASSERT_NO_FATAL_FAILURE(ends_in(end, errc::timeout));
	EXPECT_EQ(other.wait(*ring), 0);
}

// Its only room for a message holds a grant, so there is none for an acknowledgement.
TEST_F(StreamTest, ASenderThatTakesNoMessageHoldsUpNoReceiver)
{
	listen();
	process other({"hostile-stream", port(), "takes-no-ack"});
	auto with = accept();

	auto end = receive(with, 1s);
	ASSERT_NO_FATAL_FAILURE(ends_in(end, errc::timeout));
	EXPECT_EQ(other.wait(*ring), exit_status(errc::peer_lost));
	works();
}

TEST_F(StreamTest, APeerThatOffersNothingHoldsUpNoReceiver)
{
	listen();
	process other({"hold", port()});
	auto with = accept();
	auto in = *receiver::make(*ring, with, *card, options(1s));

	auto hearing = in.next();
	auto offer = within(10s, hearing);
	ASSERT_NO_FATAL_FAILURE(ends_in(offer, errc::timeout));
}

TEST_F(StreamTest, ASendThatIsDestroyedLeavesItsFileAlone)
{
	int ends[2];
	listen();
	process other({"take", port(), "1"});
	auto with = accept();
	auto out = *sender::make(*ring, with, *card, options());

	ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	unique_fd from(ends[0]), to(ends[1]);
	{
		auto running = out.send({.name = "pipe",
					 .file = from.get(),
					 .from = {},
					 .size = stream_source::unknown});
		EXPECT_FALSE(within(500ms, running)) << "it does not wait for the pipe";
	}
	EXPECT_EQ(::write(to.get(), "x", 1), 1);
	for (int i = 0; i < 10; i++)
		(void)ring->run_once(after(10ms));
	int left = 0;
	EXPECT_EQ(::ioctl(from.get(), FIONREAD, &left), 0);
	EXPECT_EQ(left, 1) << "somebody still reads it";
	EXPECT_EQ(other.wait(*ring), 0);
}

TEST_F(DmabufTest, IsASource)
{
	fill(own.bytes().first(streamed), 0);
	listen(small_endpoint);
	process other({"streams", port(), "1"});
	auto with = accept();
	auto out = *sender::make(*ring, with, *card, options_on_gpu());

	auto running = out.send(source_of(shown));
	auto end = within(60s, running);
	ASSERT_TRUE(end) << "it hangs";
	is_true(*end);
	// The peer checks each byte.
	EXPECT_EQ(other.wait(*ring), 0);
}

TEST_F(DmabufTest, IsASink)
{
	listen(small_endpoint);
	process other({"give", port()});
	auto with = accept();
	auto in = *receiver::make(*ring, with, *card, options_on_gpu());

	auto hearing = in.next();
	auto offer = within(15s, hearing);
	ASSERT_TRUE(offer && *offer && **offer);
	auto running =
		in.receive({.file = -1, .to = {shown.part(0, streamed)}, .have = 0});
	auto end = within(60s, running);
	ASSERT_TRUE(end) << "it hangs";
	is_true(*end);
	EXPECT_EQ(other.wait(*ring), 0);
	EXPECT_TRUE(filled(own.bytes().first(streamed), 1));
}

TEST_F(DmabufTest, AsAPathIsRefusedWhereTheCardTakesNone)
{
	auto o = options_on_gpu();

	o.require = data_path::device_dmabuf;
	auto found = find_path(*card, o);
	ASSERT_FALSE(found);
	EXPECT_EQ(found.error().code(), errc::no_path);
	EXPECT_NE(found.error().message().find("takes no dma-bufs"),
		  std::string_view::npos)
		<< found.error().message();
}

// Wherever the stream is: nothing waits for what does not come, nothing uses what was
// freed, and the card and the context go on.
TEST_F(StreamTest, CancelledAtRandom)
{
	constexpr int rounds = 50;
	std::mt19937 chance(::testing::UnitTest::GetInstance()->random_seed());
	auto memory = memory_of(streamed);
	unsigned done = 0;

	listen(small_endpoint);
	process other({"take", port(), std::to_string(rounds)});
	for (int i = 0; i < rounds; i++) {
		auto with = accept();
		auto out = *sender::make(*ring, with, *card, options());
		auto start = clock::now();
		{
			auto running = out.send(source_of(memory));

			for (auto n = chance() % 60; n && !running.done(); n--)
				(void)ring->run_once(after(10ms));
			done += running.done();
		}
		EXPECT_LT(clock::now() - start, 5s) << "round " << i;
	}
	RecordProperty("done", static_cast<int>(done));
	EXPECT_LT(done, static_cast<unsigned>(rounds));
	EXPECT_EQ(other.wait(*ring), 0);
	EXPECT_EQ(memory.users(), 1u);
	works();
}

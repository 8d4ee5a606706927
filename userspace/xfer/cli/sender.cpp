// SPDX-License-Identifier: MIT
#include <format>
#include <thread>

#include "xfer/credit.hpp"
#include "xfer/file_reader.hpp"
#include "xfer/plan.hpp"
#include "transfer.hpp"
#include "window.hpp"

namespace xfer {

namespace {

/// What the receiver's hello says.
struct Offer {
	QpAddress qp;
	uint64_t address, window;
	uint32_t rkey, credits;

	static result<Offer> from(const Message &hello);
};

result<Offer> Offer::from(const Message &hello)
{
	auto version = hello.number("version");
	auto qp = QpAddress::from(hello);
	auto address = hello.number("address");
	auto window = hello.number("window");
	auto rkey = hello.number("rkey", UINT32_MAX);
	auto credits = hello.number("credits", max_credits);

	for (const auto *field : {&version, &address, &window, &rkey, &credits})
		if (!*field)
			return std::unexpected(field->error());
	if (!qp)
		return std::unexpected(qp.error());
	if (*version != protocol_version || *credits == 0)
		return fail(errc::protocol, std::format(
			"protocol version {}, {} credits", *version, *credits));
	return Offer{*qp, *address, *window, static_cast<uint32_t>(*rkey),
		     static_cast<uint32_t>(*credits)};
}

class Sender {
public:
	Sender(const Options &o, Channel &control);

	result<Report> run();

private:
	result<void> start();
	result<void> read_piece(const Piece &piece);
	result<void> transfer(const Piece &piece);
	result<void> post_chunks(const Piece &piece);
	result<void> post_chunk(const Piece &piece);
	result<void> wait();
	result<void> completed(const ibv_wc &wc);
	result<void> await_verified(uint64_t index);
	result<Report> finish();
	result<void> send_piece(uint64_t index);
	void note_stall(bool stalled);
	Error explained(Error error);
	deadline limit() const { return after(options_.timeout); }

	// Work request ids: chunks have their number, credit receives this bit.
	static constexpr uint64_t credit_bit = uint64_t{1} << 63;

	const Options &options_;
	Channel &control_;
	FileReader file_;
	RdmaDevice device_;
	Ring ring_;
	Offer offer_;
	Window window_;
	Plan plan_;
	CompletionQueue cq_;
	QueuePair qp_;
	CreditAccount credits_;
	Report report_;
	uint64_t posted_ = 0;		///< chunks posted so far
	uint64_t acknowledged_ = 0;	///< chunks complete so far, in order
	uint64_t credit_receives_ = 0;	///< credit messages so far
	double in_flight_sum_ = 0;
	bool rdma_failed_ = false;
	std::optional<clock::time_point> stalled_since_;
};

Sender::Sender(const Options &o, Channel &control)
	: options_(o), control_(control), file_(o.file), device_(o.device),
	  ring_(FileReader::depth + 1),
	  offer_(or_throw(Offer::from(or_throw(
		control.expect("hello", after(o.timeout)))))),
	  window_(o, device_, std::min(offer_.window, round_to_pages(
		std::max(file_.size(), o.chunk))), 0),
	  plan_(or_throw(Plan::make(file_.size(), window_.span().size(),
				    o.chunk))),
	  cq_(device_, static_cast<int>(o.depth +
					credit_receives(offer_.credits))),
	  qp_(device_, cq_, o.depth, credit_receives(offer_.credits)),
	  credits_(offer_.credits)
{
	report_.file = o.file;
	report_.bytes = plan_.size();
	report_.chunks = plan_.chunks();
	report_.pieces = plan_.pieces();
	report_.chunk_size = plan_.chunk_size();
	report_.piece_size = plan_.piece_size();
	report_.depth = o.depth;
	report_.credits = offer_.credits;
}

result<void> Sender::start()
{
	Message hello("hello");

	for (uint32_t i = 0; i < credit_receives(offer_.credits); i++)
		if (auto posted = qp_.post_receive(credit_bit | i); !posted)
			return posted;
	if (auto connected = qp_.connect(offer_.qp); !connected)
		return connected;
	qp_.address().to(hello);
	hello.set("version", protocol_version).set("size", plan_.size())
	     .set("chunk", plan_.chunk_size()).set("piece", plan_.piece_size());
	if (auto sent = control_.send(hello, limit()); !sent)
		return sent;
	if (auto ready = control_.expect("ready", limit()); !ready)
		return std::unexpected(ready.error());
	return {};
}

result<void> Sender::read_piece(const Piece &piece)
{
	auto start = clock::now();

	// The last piece's pages are in the device. Reading over them would
	// migrate every one of them back first: drop them instead.
	if (auto dropped = window_.discard(); !dropped)
		return dropped;
	if (auto read = file_.read(ring_, window_.first(piece.file.length),
				   piece.file.offset); !read)
		return read;
	report_.read_s += seconds_since(start);
	start = clock::now();
	if (auto moved = window_.to_device(piece.file.length); !moved)
		return moved;
	report_.to_device_s += seconds_since(start);
	return {};
}

void Sender::note_stall(bool stalled)
{
	if (stalled && !stalled_since_) {
		report_.stalls++;
		stalled_since_ = clock::now();
	} else if (!stalled && stalled_since_) {
		report_.stalled_s += seconds_since(*stalled_since_);
		stalled_since_.reset();
	}
}

result<void> Sender::post_chunk(const Piece &piece)
{
	Slice chunk = plan_.chunk(piece, posted_ - piece.first);
	QueuePair::Rdma write{
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.wr_id = posted_,
		.local = window_.span().subspan(chunk.offset, chunk.length),
		.lkey = window_.mr().lkey(),
		.address = offer_.address + chunk.offset,
		.rkey = offer_.rkey,
		.immediate = static_cast<uint32_t>(posted_),
	};

	if (options_.delay.count())
		std::this_thread::sleep_for(options_.delay);
	if (auto posted = qp_.post(write); !posted)
		return posted;
	posted_++;
	auto in_flight = static_cast<uint32_t>(posted_ - acknowledged_);
	report_.in_flight_max = std::max(report_.in_flight_max, in_flight);
	in_flight_sum_ += in_flight;
	return {};
}

result<void> Sender::post_chunks(const Piece &piece)
{
	while (posted_ < piece.first + piece.chunks &&
	       posted_ - acknowledged_ < options_.depth) {
		bool credit = credits_.spend();

		note_stall(!credit);
		if (!credit)
			break;
		if (auto posted = post_chunk(piece); !posted)
			return posted;
	}
	return {};
}

result<void> Sender::completed(const ibv_wc &wc)
{
	if (wc.status != IBV_WC_SUCCESS) {
		rdma_failed_ = true;
		return std::unexpected(completion_error(wc, control_.peer(),
							device_.name()));
	}
	if (wc.wr_id & credit_bit) {
		// Post it again before taking the credits: see credit.hpp.
		auto posted = qp_.post_receive(credit_bit | credit_receives_++);
		return posted ? credits_.take(be32toh(wc.imm_data)) : posted;
	}
	if (wc.wr_id != acknowledged_)
		return fail(errc::device, std::format(
			"{}: completion of chunk {}, not {}", device_.name(),
			wc.wr_id, acknowledged_));
	acknowledged_++;
	return {};
}

result<void> Sender::wait()
{
	return wait_for_work(cq_, control_, limit(), [this](const ibv_wc &wc) {
		return completed(wc);
	});
}

result<void> Sender::transfer(const Piece &piece)
{
	auto start = clock::now();

	if (auto begun = window_.begin(); !begun)
		return begun;
	while (acknowledged_ < piece.first + piece.chunks) {
		if (auto posted = post_chunks(piece); !posted)
			return posted;
		if (auto waited = wait(); !waited)
			return waited;
	}
	report_.transfer_s += seconds_since(start);
	return window_.end();
}

result<void> Sender::await_verified(uint64_t index)
{
	auto start = clock::now();
	// The receiver may wait for its oracle, and says so if that hangs.
	auto message = control_.expect("verified", after(2 * options_.timeout));

	if (!message)
		return std::unexpected(message.error());
	auto which = message->number("index");
	if (!which || *which != index)
		return fail(errc::protocol, control_.peer() +
			    ": verified another piece");
	report_.verify_s += seconds_since(start);
	return {};
}

result<void> Sender::send_piece(uint64_t index)
{
	Piece piece = plan_.piece(index);

	if (auto read = read_piece(piece); !read)
		return read;
	if (auto sent = control_.send(Message("piece").set("index", index),
				      limit()); !sent)
		return sent;
	if (auto ready = control_.expect("go", limit()); !ready)
		return std::unexpected(ready.error());
	if (auto moved = transfer(piece); !moved)
		return moved;
	return await_verified(index);
}

result<Report> Sender::finish()
{
	if (auto sent = control_.send(Message("finish"), limit()); !sent)
		return std::unexpected(sent.error());
	auto message = control_.expect("finished", after(2 * options_.timeout));
	if (!message)
		return std::unexpected(message.error());
	auto side = SideStats::from(*message);
	if (!side)
		return std::unexpected(side.error());
	report_.receiver = *side;
	report_.sender = window_.stats();
	report_.sha256 = message->string("sha256").value_or("?");
	report_.verified_by = message->string("text").value_or("?");
	report_.in_flight_mean = in_flight_sum_ /
		static_cast<double>(plan_.chunks());
	return report_;
}

// Name the cause rather than the symptom, and say how far it got. A queue pair
// fails when the other side gives up; why it did is on the control connection.
Error Sender::explained(Error error)
{
	if (rdma_failed_)
		if (auto cause = control_.receive(after(std::chrono::seconds(1)));
		    !cause && cause.error().code() != errc::timeout)
			error = cause.error();
	return Error(error.code(), std::format(
		"{}; {}", error.what(), acknowledged_
		? std::format("last acknowledged chunk {} of {}", acknowledged_,
			      plan_.chunks())
		: std::format("none of {} chunks was acknowledged",
			      plan_.chunks())));
}

result<Report> Sender::run()
{
	auto start = clock::now();
	auto step = this->start();

	for (uint64_t i = 0; step && i < plan_.pieces(); i++)
		step = send_piece(i);
	if (!step)
		return std::unexpected(explained(step.error()));
	auto report = finish();
	if (!report)
		return std::unexpected(explained(report.error()));
	report->total_s = seconds_since(start);
	return report;
}

} // namespace

result<Report> send_file(const Options &o, Channel &control)
{
	return Sender(o, control).run();
}

} // namespace xfer

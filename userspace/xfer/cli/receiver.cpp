// SPDX-License-Identifier: MIT
#include <format>
#include <thread>

#include "oracle.hpp"
#include "xfer/credit.hpp"
#include "xfer/plan.hpp"
#include "transfer.hpp"
#include "window.hpp"

namespace xfer {

namespace {

class Receiver {
public:
	Receiver(const Options &o, Channel &control);

	result<void> run();

private:
	result<void> offer();
	result<void> accept_offer();
	result<void> pieces();
	result<void> piece(uint64_t index);
	result<void> receive(const Piece &piece);
	result<void> wait();
	result<void> completed(const ibv_wc &wc);
	result<void> arrived(const ibv_wc &wc);
	result<void> give_credit();
	result<void> drain_credits();
	result<void> finish();
	Error explained(Error error);
	deadline limit() const { return after(options_.timeout); }

	// How many credit messages may be under way: enough for all of them,
	// unless acknowledgements are late.
	uint32_t room() const { return credit_receives(options_.credits) + 1; }

	// Work request ids: receives have their number, sends this bit.
	static constexpr uint64_t send_bit = uint64_t{1} << 63;

	const Options &options_;
	Channel &control_;
	RdmaDevice device_;
	Window window_;
	Verifier verifier_;
	CompletionQueue cq_;
	QueuePair qp_;
	CreditReturn credits_;
	std::optional<Plan> plan_;
	Piece piece_{};			///< the one that is arriving
	uint64_t arrived_ = 0;		///< chunks so far
	bool rdma_failed_ = false;
};

Receiver::Receiver(const Options &o, Channel &control)
	: options_(o), control_(control), device_(o.device),
	  window_(o, device_, UINT64_MAX,
		  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
	  verifier_(o, window_),
	  cq_(device_, static_cast<int>(o.credits + room())),
	  qp_(device_, cq_, room(), o.credits), credits_(o.credits, room())
{
}

// Receives are posted before their number is told: see credit.hpp.
result<void> Receiver::offer()
{
	Message hello("hello");
	auto window = window_.span();

	for (uint32_t i = 0; i < options_.credits; i++)
		if (auto posted = qp_.post_receive(i); !posted)
			return posted;
	qp_.address().to(hello);
	hello.set("version", protocol_version)
	     .set("address", reinterpret_cast<uintptr_t>(window.data()))
	     .set("window", window.size()).set("rkey", window_.mr().rkey())
	     .set("credits", options_.credits);
	return control_.send(hello, limit());
}

result<void> Receiver::accept_offer()
{
	auto hello = control_.expect("hello", limit());
	if (!hello)
		return std::unexpected(hello.error());
	auto remote = QpAddress::from(*hello);
	if (!remote)
		return std::unexpected(remote.error());
	auto version = hello->number("version", protocol_version);
	auto size = hello->number("size");
	auto chunk = hello->number("chunk");
	auto piece = hello->number("piece", window_.span().size());
	for (const auto *field : {&version, &size, &chunk, &piece})
		if (!*field)
			return std::unexpected(field->error());
	auto plan = Plan::make(*size, *piece, *chunk);
	if (!plan)
		return std::unexpected(plan.error());
	plan_ = *plan;
	if (auto connected = qp_.connect(*remote); !connected)
		return connected;
	return control_.send(Message("ready"), limit());
}

result<void> Receiver::give_credit()
{
	if (auto total = credits_.message())
		return qp_.send_immediate(send_bit, *total);
	return {};
}

// The next chunk, or what claims to be one.
result<void> Receiver::arrived(const ibv_wc &wc)
{
	uint64_t index = arrived_ - piece_.first;

	if (index >= piece_.chunks || wc.wr_id != arrived_ ||
	    be32toh(wc.imm_data) != static_cast<uint32_t>(arrived_) ||
	    wc.byte_len != plan_->chunk(piece_, index).length)
		return fail(errc::protocol, std::format(
			"{}: chunk {} of {} bytes where chunk {} is due",
			control_.peer(), be32toh(wc.imm_data), wc.byte_len,
			arrived_));
	arrived_++;
	if (options_.delay.count())
		std::this_thread::sleep_for(options_.delay);
	// Receives complete in order: this one gets the number after the last.
	auto posted = qp_.post_receive(arrived_ + options_.credits - 1);
	if (posted)
		credits_.reposted();
	return posted;
}

result<void> Receiver::completed(const ibv_wc &wc)
{
	if (wc.status != IBV_WC_SUCCESS) {
		rdma_failed_ = true;
		return std::unexpected(completion_error(wc, control_.peer(),
							device_.name()));
	}
	if (wc.wr_id & send_bit)
		credits_.sent();
	else if (auto handled = arrived(wc); !handled)
		return handled;
	return give_credit();
}

result<void> Receiver::wait()
{
	return wait_for_work(cq_, control_, limit(), [this](const ibv_wc &wc) {
		return completed(wc);
	});
}

result<void> Receiver::receive(const Piece &piece)
{
	if (auto begun = window_.begin(); !begun)
		return begun;
	if (auto sent = control_.send(Message("go"), limit()); !sent)
		return sent;
	while (arrived_ < piece.first + piece.chunks)
		if (auto waited = wait(); !waited)
			return waited;
	return window_.end();
}

result<void> Receiver::piece(uint64_t index)
{
	piece_ = plan_->piece(index);
	if (auto moved = window_.to_device(piece_.file.length); !moved)
		return moved;
	if (auto received = receive(piece_); !received)
		return received;
	if (auto hashed = verifier_.piece(index, piece_.file.length); !hashed)
		return hashed;
	return control_.send(Message("verified").set("index", index), limit());
}

// The sender is about to go: nothing may be under way to it then.
result<void> Receiver::drain_credits()
{
	while (credits_.under_way())
		if (auto waited = wait(); !waited)
			return waited;
	return {};
}

result<void> Receiver::finish()
{
	Message finished("finished");

	if (auto asked = control_.expect("finish", limit()); !asked)
		return std::unexpected(asked.error());
	if (auto drained = drain_credits(); !drained)
		return drained;
	auto sha256 = verifier_.finish(plan_->size());
	if (!sha256)
		return std::unexpected(sha256.error());
	window_.stats().to(finished);
	finished.set("sha256", *sha256).set("text", verifier_.description());
	return control_.send(finished, limit());
}

result<void> Receiver::pieces()
{
	for (uint64_t i = 0; i < plan_->pieces(); i++) {
		auto next = control_.expect("piece", limit());

		if (!next)
			return std::unexpected(next.error());
		auto index = next->number("index");
		if (!index || *index != i)
			return fail(errc::protocol, control_.peer() +
				    ": pieces out of order");
		if (auto done = piece(i); !done)
			return done;
	}
	return {};
}

// As on the sender's side: the cause, and how far it got.
Error Receiver::explained(Error error)
{
	if (rdma_failed_)
		if (auto cause = control_.receive(after(std::chrono::seconds(1)));
		    !cause && cause.error().code() != errc::timeout)
			error = cause.error();
	std::string chunks = plan_ ? std::to_string(plan_->chunks()) : "?";
	return Error(error.code(), std::format(
		"{}; {}", error.what(), arrived_
		? std::format("last received chunk {} of {}", arrived_, chunks)
		: std::format("none of {} chunks was received", chunks)));
}

result<void> Receiver::run()
{
	auto step = offer();

	if (step)
		step = accept_offer();
	if (step)
		step = pieces();
	if (step)
		step = finish();
	if (!step)
		return std::unexpected(explained(step.error()));
	return {};
}

} // namespace

result<void> receive_file(const Options &o, Channel &control)
{
	return Receiver(o, control).run();
}

} // namespace xfer

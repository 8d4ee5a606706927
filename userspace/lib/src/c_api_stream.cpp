// SPDX-License-Identifier: MIT
// The C API: streams. What is a coroutine in C++ is an operation here.
#include "c_api.hpp"
#include "sluice/stream.hpp"
#include "stream_wire.hpp"

using namespace sluice;
using namespace sluice::c;

namespace {

/// Keeps the connection, though the user closes it.
class used_peer {
public:
	used_peer(std::shared_ptr<peer> it) : it_(std::move(it)) { it_->streams++; }
	used_peer(const used_peer &) = delete;
	~used_peer()
	{
		it_->streams--;
		it_->end_if_unused();
	}
	peer *operator->() const noexcept { return it_.get(); }

private:
	std::shared_ptr<peer> it_;
};

/// One end of a stream, and what it uses. Destroyed in reverse order.
template <class End> struct stream {
	used_peer with;
	std::shared_ptr<gpu> on;
	std::optional<End> end; ///< gone after a failure
	bool busy = false;
	std::optional<stream_report> report;
	std::optional<stream_offer> offer;

	ring &in() const noexcept { return *with->by->in; }
};

/// A coroutine of a stream.
template <class End, class T> class stream_operation final : public stepped_operation {
public:
	/// Keep what it returned: the operation's value.
	using value_of = uint64_t (*)(stream<End> &, result<T> &);

	stream_operation(std::shared_ptr<stream<End>> on, task<result<T>> begun,
			 value_of value) noexcept
		: stepped_operation(on->with->by->in, on, "stream"),
		  stream_(std::move(on)), value_(value), task_(std::move(begun))
	{
		stream_->busy = true;
		in_->tasks++;
	}
	~stream_operation() override { cancel(); }

	/// If it is done, take what it returned.
	bool done() override;
	// What its coroutines use is destroyed with them, and so is the stream.
	void cancel() override
	{
		if (!done())
			finish(fail(errc::cancelled, "stream", "cancelled"));
	}

private:
	result<uint64_t> outcome() const override { return outcome_; }
	void finish(result<uint64_t> outcome);

	std::shared_ptr<stream<End>> stream_;
	value_of value_;
	std::optional<task<result<T>>> task_;
	result<uint64_t> outcome_ = 0;
};

template <class End, class T> bool stream_operation<End, T>::done()
{
	if (!task_)
		return true;
	if (!task_->done())
		return false;
	auto returned = task_->run(in_->it);
	if (!returned) {
		finish(std::unexpected(returned.error()));
		return true;
	}
	finish(value_ ? value_(*stream_, returned) : 0);
	return true;
}

// After a failure no part of the stream may continue, e.g. write to memory of the
// caller.
template <class End, class T>
void stream_operation<End, T>::finish(result<uint64_t> outcome)
{
	outcome_ = std::move(outcome);
	task_.reset();
	in_->tasks--;
	stream_->busy = false;
	if (!outcome_)
		stream_->end.reset();
}

result<stream_options> options_of(const sluice_stream_options *options,
				  std::shared_ptr<gpu> &on)
{
	stream_options to;

	SLUICE_TRY(auto o, taken(options, "options"));
	SLUICE_CHECK(known_flags(o.flags,
				 SLUICE_STREAM_NO_CHECKSUM | SLUICE_STREAM_NO_DIGEST,
				 "options"));
	SLUICE_CHECK(not_reserved(o.reserved, "options"));
	if (o.require > SLUICE_PATH_STAGED)
		return fail(errc::usage, "require",
			    std::format("{} is no enum sluice_data_path", o.require));
	if (o.piece)
		to.piece = o.piece;
	to.chunk = o.chunk ? o.chunk : std::min(to.chunk, to.piece);
	if (o.pieces)
		to.pieces = o.pieces;
	to.checksum = !(o.flags & SLUICE_STREAM_NO_CHECKSUM);
	to.digest = !(o.flags & SLUICE_STREAM_NO_DIGEST);
	if (o.require)
		to.require = static_cast<data_path>(o.require - 1);
	SLUICE_TRY(to.patience, duration_of(o.patience_ns, to.patience, "patience_ns"));
	if (o.gpu) {
		on = o.gpu->it;
		to.gpu = &on->it;
	}
	return to;
}

static_assert(static_cast<int>(data_path::device_alias) + 1 ==
	      SLUICE_PATH_DEVICE_ALIAS);
static_assert(static_cast<int>(data_path::staged) + 1 == SLUICE_PATH_STAGED);

int64_t nanoseconds_of(clock::duration d)
{
	return std::chrono::nanoseconds(d).count();
}

sluice_report report_of(const stream_report &from)
{
	sluice_report r{};

	put_text(r.name, from.name);
	r.bytes = from.bytes;
	r.resumed = from.resumed;
	r.pieces = from.pieces;
	r.bytes_by_path[static_cast<size_t>(from.path) + 1] = from.bytes;
	r.total_ns = nanoseconds_of(from.total);
	r.storage_ns = nanoseconds_of(from.storage);
	r.engine_ns = nanoseconds_of(from.engine);
	r.wire_ns = nanoseconds_of(from.wire);
	r.check_ns = nanoseconds_of(from.check);
	r.grant_wait_ns = nanoseconds_of(from.granted_late);
	r.grant_waits = from.waits_for_grant;
	r.system_calls = from.system_calls;
	r.most_in_flight = from.most_in_flight;
	put_text(r.path_reason, from.path_reason);
	r.pages_elsewhere = from.pages_elsewhere;
	r.numa_node = from.numa_node;
	if (from.migrations) {
		r.flags |= SLUICE_REPORT_MIGRATIONS;
		r.migrated_in = from.migrations->migrated_in;
		r.migrated_out = from.migrations->migrated_out;
		r.lost_events = from.migrations->lost_events;
	}
	if (from.digest) {
		r.flags |= SLUICE_REPORT_DIGEST;
		std::memcpy(r.sha256, from.digest->data(), sizeof(r.sha256));
	}
	return r;
}

template <class End> result<void> free_to_begin(const stream<End> &s)
{
	if (s.busy)
		return fail(errc::busy, "stream", "an operation is under way: free it");
	if (!s.end)
		return fail(errc::cancelled, "stream",
			    "it broke off: make another one");
	return {};
}

template <class Handle, class End>
result<void> make_end(Handle **to, sluice_endpoint *with,
		      const sluice_stream_options *options)
{
	SLUICE_CHECK(all_given("endpoint stream", with, to));
	auto s = std::make_shared<stream<End>>(with->it);
	SLUICE_TRY(auto o, options_of(options, s->on));
	SLUICE_TRY(End end, End::make(s->in().it, with->it->it, with->it->by->it, o));
	s->end.emplace(std::move(end));
	hand_out(to, std::move(s));
	return {};
}

/// Start a coroutine of a stream.
template <class End, class T>
void start_task(sluice_operation **to, const std::shared_ptr<stream<End>> &on,
		task<result<T>> begun,
		typename stream_operation<End, T>::value_of value = nullptr)
{
	*to = new stream_operation<End, T>(on, std::move(begun), value);
}

template <class End>
uint64_t keep_report(stream<End> &s, result<stream_report> &r)
{
	s.report = *std::move(r);
	return s.report->bytes;
}

uint64_t keep_offer(stream<receiver> &s, result<std::optional<stream_offer>> &offer)
{
	s.offer = *std::move(offer);
	return s.offer.has_value();
}

template <class Handle>
int tell_report(const Handle *of, const char *name, sluice_report *to) noexcept
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(of, name));
		if (!of->it->report)
			return fail(errc::usage, name, "nothing was moved in full yet");
		return give(to, report_of(*of->it->report), "report");
	});
}

template <class Handle>
int tell_progress(const Handle *of, const char *name, sluice_progress *to) noexcept
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(of, name));
		if (!of->it->end)
			return fail(errc::cancelled, name, "it broke off");
		const stream_progress &p = of->it->end->progress();
		return give(
			to,
			sluice_progress{.size = 0, .bytes = p.bytes, .total = p.size},
			"progress");
	});
}

result<stream_source> source_of(const sluice_source *from)
{
	stream_source to;

	SLUICE_CHECK(given(from, "source"));
	SLUICE_TRY(auto s, taken(from, "source"));
	SLUICE_CHECK(given(s.name, "source->name"));
	SLUICE_CHECK(not_reserved(s.reserved, "source"));
	// Later it would end the stream.
	if (!wire::is_name(s.name))
		return wire::is_no_name(s.name);
	to.name = s.name;
	if (s.memory || s.count) {
		SLUICE_TRY(to.from, slices_of(s.memory, s.count, "source->memory"));
		return to;
	}
	if (s.file < 0)
		return fail(errc::usage, "source", "neither a file nor memory");
	to.file = s.file;
	to.size = s.bytes;
	return to;
}

result<stream_sink> sink_of(const sluice_sink *from)
{
	stream_sink to;

	SLUICE_CHECK(given(from, "sink"));
	SLUICE_TRY(auto s, taken(from, "sink"));
	SLUICE_CHECK(not_reserved(s.reserved, "sink"));
	to.have = s.have;
	if (s.memory || s.count) {
		SLUICE_TRY(to.to, slices_of(s.memory, s.count, "sink->memory"));
		return to;
	}
	if (s.file < 0)
		return fail(errc::usage, "sink", "neither a file nor memory");
	to.file = s.file;
	return to;
}

} // namespace

struct sluice_sender {
	std::shared_ptr<stream<sender>> it;
};

struct sluice_receiver {
	std::shared_ptr<stream<receiver>> it;
};

const char *sluice_path_name(int path)
{
	if (path == SLUICE_PATH_ANY)
		return "any";
	if (path < SLUICE_PATH_ANY || path > SLUICE_PATH_STAGED)
		return "?";
	return name(static_cast<data_path>(path - 1));
}

int sluice_sender_create(sluice_endpoint *with,
			 const struct sluice_stream_options *options,
			 sluice_sender **to)
{
	return guarded(
		[&] { return make_end<sluice_sender, sender>(to, with, options); });
}

void sluice_sender_free(sluice_sender *out)
{
	delete out;
}

int sluice_sender_send(sluice_sender *out, const struct sluice_source *source,
		       sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("sender operation", out, op));
		SLUICE_CHECK(free_to_begin(*out->it));
		SLUICE_TRY(auto from, source_of(source));
		start_task<sender, stream_report>(
			op, out->it, out->it->end->send(std::move(from)), keep_report);
		return {};
	});
}

int sluice_sender_finish(sluice_sender *out, sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("sender operation", out, op));
		SLUICE_CHECK(free_to_begin(*out->it));
		start_task<sender, void>(op, out->it, out->it->end->finish());
		return {};
	});
}

int sluice_sender_report(const sluice_sender *out, struct sluice_report *report)
{
	return tell_report(out, "sender", report);
}

int sluice_sender_progress(const sluice_sender *out, struct sluice_progress *progress)
{
	return tell_progress(out, "sender", progress);
}

int sluice_receiver_create(sluice_endpoint *with,
			   const struct sluice_stream_options *options,
			   sluice_receiver **to)
{
	return guarded(
		[&] { return make_end<sluice_receiver, receiver>(to, with, options); });
}

void sluice_receiver_free(sluice_receiver *in)
{
	delete in;
}

int sluice_receiver_next(sluice_receiver *in, sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("receiver operation", in, op));
		SLUICE_CHECK(free_to_begin(*in->it));
		in->it->offer.reset();
		start_task<receiver, std::optional<stream_offer>>(
			op, in->it, in->it->end->next(), keep_offer);
		return {};
	});
}

int sluice_receiver_offer(const sluice_receiver *in, struct sluice_offer *offer)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(in, "receiver"));
		if (!in->it->offer)
			return fail(errc::usage, "receiver", "nothing is offered");
		sluice_offer o{};
		put_text(o.name, in->it->offer->name);
		o.bytes = in->it->offer->size;
		return give(offer, o, "offer");
	});
}

int sluice_receiver_receive(sluice_receiver *in, const struct sluice_sink *sink,
			    sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("receiver operation", in, op));
		SLUICE_CHECK(free_to_begin(*in->it));
		if (!in->it->offer)
			return fail(errc::usage, "receiver", "nothing is offered");
		SLUICE_TRY(auto to, sink_of(sink));
		in->it->offer.reset();
		start_task<receiver, stream_report>(
			op, in->it, in->it->end->receive(std::move(to)), keep_report);
		return {};
	});
}

int sluice_receiver_refuse(sluice_receiver *in, const char *why, sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("receiver why operation", in, why, op));
		SLUICE_CHECK(free_to_begin(*in->it));
		if (!in->it->offer)
			return fail(errc::usage, "receiver", "nothing is offered");
		in->it->offer.reset();
		start_task<receiver, void>(op, in->it, in->it->end->refuse(why));
		return {};
	});
}

int sluice_receiver_report(const sluice_receiver *in, struct sluice_report *report)
{
	return tell_report(in, "receiver", report);
}

int sluice_receiver_progress(const sluice_receiver *in,
			     struct sluice_progress *progress)
{
	return tell_progress(in, "receiver", progress);
}

// SPDX-License-Identifier: MIT
// The C API: contexts and operations.
#include "c_api.hpp"

using namespace sluice;
using namespace sluice::c;

namespace {

/// Start something, and hand it out.
template <class Begin>
int begin(sluice_context *context, sluice_operation **to, Begin &&what) noexcept
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("context operation", context, to));
		SLUICE_TRY(operation begun, what(context->it->it));
		return start(to, context->it, {}, std::move(begun));
	});
}

int look(sluice_operation *op, bool (sluice_operation::*how)()) noexcept
{
	bool done = false;
	int err = guarded([&]() -> result<void> {
		SLUICE_CHECK(given(op, "operation"));
		done = (op->*how)();
		return {};
	});

	return err ? err : done;
}

} // namespace

bool c::stepped_operation::poll()
{
	if (!done())
		(void)in_->it.run_once(deadline{});
	return done();
}

result<uint64_t> c::stepped_operation::wait(deadline until)
{
	while (!done()) {
		if (auto ran = in_->it.run_once(until); !ran)
			return std::unexpected(ran.error());
		if (!done() && clock::now() >= until)
			return fail(errc::timeout, what_,
				    "not done by the deadline: it goes on",
				    EINPROGRESS);
	}
	return outcome();
}

result<void> c::start(sluice_operation **to, std::shared_ptr<ring> in,
		      std::shared_ptr<const void> on, operation begun)
{
	*to = new ring_operation<operation>(std::move(in), std::move(on),
					    std::move(begun));
	return {};
}

int sluice_context_open(const struct sluice_context_options *options,
			sluice_context **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(to, "context"));
		SLUICE_TRY(auto o, taken(options, "options"));
		SLUICE_CHECK(not_reserved(o.reserved, "options"));
		context::options wanted;
		if (o.operations)
			wanted.operations = o.operations;
		SLUICE_TRY(auto opened, context::open(wanted));
		hand_out(to, std::make_shared<ring>(std::move(opened)));
		return {};
	});
}

void sluice_context_close(sluice_context *context)
{
	// What was opened on it continues, and nothing else could end the chain.
	if (context)
		context->it->chain.reset();
	delete context;
}

int sluice_context_wait(sluice_context *context, int64_t until, uint32_t *completed)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(context, "context"));
		SLUICE_TRY(unsigned n, context->it->it.run_once(deadline_of(until)));
		if (completed)
			*completed = n;
		return {};
	});
}

int sluice_context_fd(const sluice_context *context)
{
	int fd = -1;
	int err = guarded([&]() -> result<void> {
		SLUICE_CHECK(given(context, "context"));
		fd = context->it->it.fd();
		if (fd < 0)
			return fail_errno("context", "it has no descriptor", -fd);
		return {};
	});

	return err ? err : fd;
}

int sluice_context_left_behind(const sluice_context *context)
{
	int count = 0;
	int err = guarded([&]() -> result<void> {
		SLUICE_CHECK(given(context, "context"));
		count = static_cast<int>(context->it->it.left_behind());
		return {};
	});

	return err ? err : count;
}

int sluice_context_submit(sluice_context *context)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(context, "context"));
		return context->it->it.submit();
	});
}

int sluice_context_read(sluice_context *context, int file,
			const struct sluice_slice *to, uint64_t offset,
			sluice_operation **op)
{
	return begin(context, op, [&](sluice::context &in) -> result<operation> {
		SLUICE_TRY(auto memory, slice_of(to, "to"));
		return in.read(file, std::move(memory), offset);
	});
}

int sluice_context_write(sluice_context *context, int file,
			 const struct sluice_slice *from, uint64_t offset,
			 sluice_operation **op)
{
	return begin(context, op, [&](sluice::context &in) -> result<operation> {
		SLUICE_TRY(auto memory, slice_of(from, "from"));
		return in.write(file, std::move(memory), offset);
	});
}

int sluice_context_sync(sluice_context *context, int file, sluice_operation **op)
{
	return begin(context, op, [&](sluice::context &in) -> result<operation> {
		return in.sync(file);
	});
}

int sluice_context_ready(sluice_context *context, int file, short events,
			 sluice_operation **op)
{
	return begin(context, op, [&](sluice::context &in) -> result<operation> {
		return in.ready(file, events);
	});
}

int sluice_context_sleep(sluice_context *context, int64_t until, sluice_operation **op)
{
	return begin(context, op, [&](sluice::context &in) -> result<operation> {
		return in.sleep_until(deadline_of(until));
	});
}

int sluice_chain_begin(sluice_context *context, uint32_t length)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(context, "context"));
		if (context->it->chain)
			return fail(errc::busy, "context", "a chain is open already");
		context->it->chain.emplace(context->it->it, length);
		return {};
	});
}

int sluice_chain_end(sluice_context *context)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(context, "context"));
		if (!context->it->chain)
			return fail(errc::usage, "context", "no chain is open");
		context->it->chain.reset();
		return {};
	});
}

int sluice_operation_poll(sluice_operation *op)
{
	return look(op, &sluice_operation::poll);
}

int sluice_operation_done(sluice_operation *op)
{
	return look(op, &sluice_operation::done);
}

int sluice_operation_wait(sluice_operation *op, int64_t until, uint64_t *value)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(op, "operation"));
		SLUICE_TRY(uint64_t n, op->wait(deadline_of(until)));
		if (value)
			*value = n;
		return {};
	});
}

int sluice_operation_cancel(sluice_operation *op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(op, "operation"));
		op->cancel();
		return {};
	});
}

void sluice_operation_free(sluice_operation *op)
{
	delete op;
}

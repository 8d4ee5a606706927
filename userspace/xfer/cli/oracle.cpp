// SPDX-License-Identifier: MIT
#include "oracle.hpp"

namespace xfer {

Verifier::Verifier(const Options &o, const Window &window)
	: window_(window), timeout_(o.timeout),
	  moved_for_it_(o.alias == memory_alias::no_cpu)
{
	if (o.verify != "self")
		oracle_.emplace(or_throw(open_virtio_port(o.verify)));
}

result<void> Verifier::tell(uint64_t index, uint64_t length)
{
	// After a fallback the pages are in system memory: put them back to
	// where the oracle can see them. Otherwise this moves nothing.
	if (auto moved = window_.to_device(length); !moved)
		return moved;
	auto extents = window_.lookup(length);
	if (!extents)
		return std::unexpected(extents.error());
	auto sent = oracle_->send(Message("piece").set("index", index)
				  .set("length", length)
				  .set("extents", extents->size()), limit());
	for (const auto &extent : *extents) {
		if (!sent)
			break;
		sent = oracle_->send(Message("extent")
				     .set("offset", extent.offset)
				     .set("length", extent.length), limit());
	}
	return sent;
}

result<void> Verifier::piece(uint64_t index, uint64_t length)
{
	if (!from_outside())
		return sha256_.update(window_.first(length));
	if (auto told = tell(index, length); !told)
		return told;
	auto answer = oracle_->expect("checked", limit());
	if (!answer)
		return std::unexpected(answer.error());
	auto which = answer->number("index");
	if (!which || *which != index)
		return fail(errc::protocol, "oracle: checked another piece");
	return {};
}

result<std::string> Verifier::finish(uint64_t length)
{
	Message last(from_outside() ? "finish" : "claim");

	last.set("length", length);
	if (!from_outside()) {
		auto own = sha256_.hex();

		if (!own || !oracle_)
			return own;
		last.set("sha256", *own);
	}
	if (auto sent = oracle_->send(last, limit()); !sent)
		return std::unexpected(sent.error());
	auto answer = oracle_->expect("digest", limit());
	if (!answer)
		return std::unexpected(answer.error());
	return answer->string("sha256");
}

std::string Verifier::description() const
{
	if (!from_outside())
		return oracle_ ? "receiver's CPU, compared with FILE on the host"
			       : "receiver's CPU, not compared";
	return std::string("host, from the file behind the BAR, compared with "
			   "FILE") +
		(moved_for_it_ ? "; pages were put back into the device for it"
			       : "");
}

} // namespace xfer

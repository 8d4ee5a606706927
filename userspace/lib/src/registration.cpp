// SPDX-License-Identifier: MIT
#include <format>

#include "advise.hpp"
#include "card.hpp"
#include "try.hpp"

namespace sluice {

namespace detail {

namespace {

using data_ptr = std::shared_ptr<registration_data>;

int access_of(remote rights) noexcept
{
	auto wanted = static_cast<unsigned>(rights);
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (wanted & static_cast<unsigned>(remote::read))
		access |= IBV_ACCESS_REMOTE_READ;
	if (wanted & static_cast<unsigned>(remote::write))
		access |= IBV_ACCESS_REMOTE_WRITE;
	return access;
}

result<void> check(const card &c, const slice &memory)
{
	if (!memory.size())
		return fail(errc::usage, c.info.name, "no memory to register");
	if (!memory.valid())
		return fail(errc::usage, c.info.name,
			    "what to register is outside of its buffer");
	return {};
}

/// Why @p path is impossible for this memory and card, or nullptr.
const char *obstacle(const card &c, memory kind, registration_path path) noexcept
{
	switch (path) {
	case registration_path::on_demand:
		if (kind == memory::vram)
			return "video memory has no pages to be found on demand";
		if (c.info.on_demand_wrong)
			return "ODP moves wrong bytes on this kernel; series 04 mends it";
		if (c.info.on_demand_untried)
			return "no trial of ODP could be made: the port is down, or slow";
		return c.info.on_demand ? nullptr : "the card has no ODP for RC";
	case registration_path::dmabuf:
		return c.info.dmabuf ? nullptr : "the card's driver takes no dma-bufs";
	case registration_path::pinned:
		if (kind == memory::svm)
			return "pinning would move it out of the GPU";
		return kind == memory::host ? nullptr : "it is no host memory";
	}
	return "no such path";
}

std::unexpected<error> no_path(const card &c, registration_path path,
			       std::string_view why, int number = 0)
{
	return fail(errc::no_path, c.info.name, std::format("{}: {}", name(path), why),
		    number);
}

mr_ptr register_dmabuf(const card &c, const slice &memory, int access, int fd)
{
	return mr_ptr(ibv_reg_dmabuf_mr(c.pd.get(), memory.offset(), memory.size(),
					memory.address(), fd, access));
}

mr_ptr register_pages(const card &c, const slice &memory, int access)
{
	return mr_ptr(ibv_reg_mr(c.pd.get(), memory.data(), memory.size(), access));
}

std::string_view why_not(registration_path path, int number) noexcept
{
	if (path == registration_path::dmabuf && number == EOPNOTSUPP)
		return "the card or the exporter does not support it";
	if (path == registration_path::pinned && number == ENOMEM)
		return "not enough memory may be pinned (ulimit -l)";
	return ::strerrordesc_np(number) ? ::strerrordesc_np(number) : "refused";
}

result<data_ptr> register_best(const std::shared_ptr<card> &c, const slice &memory,
			       remote rights)
{
	std::string reasons;

	for (auto path : {registration_path::on_demand, registration_path::dmabuf,
			  registration_path::pinned}) {
		auto made = register_by(c, memory, rights, path);
		if (made || made.error().code() != errc::no_path)
			return made;
		auto text = made.error().message();

		// Without the card's name, which the error has already.
		text.remove_prefix(made.error().where().size() + 2);
		reasons += std::format("{}{}", reasons.empty() ? "" : "; ", text);
	}
	return fail(errc::no_path, c->info.name, reasons);
}

} // namespace

bool registration_data::covers(const slice &part, const card &user) const noexcept
{
	if (card_.get() != &user || part.of().block() != memory_.of().block())
		return false;
	return part.offset() >= memory_.offset() &&
	       part.offset() - memory_.offset() <= memory_.size() &&
	       part.size() <= memory_.size() - (part.offset() - memory_.offset());
}

result<data_ptr> register_by(const std::shared_ptr<card> &c, const slice &memory,
			     remote rights, registration_path path)
{
	SLUICE_CHECK(check(*c, memory));
	if (const char *why = obstacle(*c, memory.of().kind(), path))
		return no_path(*c, path, why);
	int access = access_of(rights), fd = -1;

	if (path == registration_path::dmabuf) {
		fd = memory.of().block()->dmabuf();
		if (fd < 0)
			return fail_errno(
				c->info.name,
				std::format("{}: DRM_IOCTL_PRIME_HANDLE_TO_FD",
					    name(path)),
				errno, errc::no_path);
	}
	if (path == registration_path::on_demand)
		access |= IBV_ACCESS_ON_DEMAND;
	mr_ptr region = path == registration_path::dmabuf
				? register_dmabuf(*c, memory, access, fd)
				: register_pages(*c, memory, access);
	if (!region)
		return no_path(*c, path, why_not(path, errno), errno);
	return std::make_shared<registration_data>(c, memory, path, std::move(region));
}

// Pinned first: the card need not fault on what it uses all the time. A user who may
// not pin memory gets them on demand.
result<data_ptr> register_ring(const std::shared_ptr<card> &c, const slice &memory)
{
	auto pinned = register_by(c, memory, remote::none, registration_path::pinned);

	if (pinned || !c->on_demand_messages)
		return pinned;
	return register_by(c, memory, remote::none, registration_path::on_demand);
}

} // namespace detail

const char *name(registration_path path) noexcept
{
	switch (path) {
	case registration_path::on_demand: return "on demand";
	case registration_path::dmabuf: return "dma-buf";
	case registration_path::pinned: return "pinned";
	}
	return "?";
}

const slice &registration::memory() const noexcept
{
	return data_->memory();
}

registration_path registration::path() const noexcept
{
	return data_->path();
}

uint32_t registration::local_key() const noexcept
{
	return data_->region().lkey;
}

uint32_t registration::remote_key() const noexcept
{
	return data_->region().rkey;
}

result<void> registration::prefetch() const
{
	const ibv_mr &region = data_->region();
	auto size = memory().size();
	auto address = memory().address();

	if (path() != registration_path::on_demand)
		return fail(errc::unsupported, "prefetch",
			    std::format("the memory is registered {}", name(path())));
	// One entry has a length of 32 bits.
	for (size_t at = 0, most = size_t{1} << 30; at < size; at += most) {
		ibv_sge part = {
			.addr = address + at,
			.length = static_cast<uint32_t>(std::min(most, size - at)),
			.lkey = region.lkey};

		if (int err = detail::find_pages(region, part))
			return fail_errno(ibv_get_device_name(region.context->device),
					  "ibv_advise_mr", err, errc::device);
	}
	return {};
}

result<registration> nic::register_memory(const slice &memory, remote rights)
{
	SLUICE_TRY(auto data, detail::register_best(card_, memory, rights));
	return registration(std::move(data));
}

result<registration> nic::register_memory(const slice &memory, remote rights,
					  registration_path path)
{
	SLUICE_TRY(auto data, detail::register_by(card_, memory, rights, path));
	return registration(std::move(data));
}

} // namespace sluice

// SPDX-License-Identifier: MIT
#include "sluice/nic.hpp"

#include <filesystem>
#include <fstream>

#include "card.hpp"
#include "odp_trial.hpp"
#include "sysfs.hpp"
#include "try.hpp"

namespace sluice {

namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path &file)
{
	std::ifstream in(file);
	std::string line;

	std::getline(in, line);
	return line;
}

// The last component of a link's target; empty if there is none.
std::string target(const fs::path &link)
{
	std::error_code ignored;

	return fs::read_symlink(link, ignored).filename().string();
}

// A port reports the name of its interface in the network namespace of the caller.
void describe_place(nic_info &info)
{
	fs::path at = fs::path("/sys/class/infiniband") / info.name;

	info.interface = first_line(at / "ports/1/gid_attrs/ndevs/0");
	if (fs::exists(at / "device/vendor")) {
		info.address = target(at / "device");
		info.driver = target(at / "device/driver");
		info.numa_node =
			sysfs::integer(first_line(at / "device/numa_node"), -1);
	} else if (detail::is_soft_roce(info.name.c_str())) {
		info.driver = "rdma_rxe";
	}
}

void describe_ports(nic_info &info, ibv_context *device, unsigned ports)
{
	for (unsigned i = 1; i <= ports; i++) {
		ibv_port_attr port{};

		if (ibv_query_port(device, static_cast<uint8_t>(i), &port))
			continue;
		info.active |= port.state == IBV_PORT_ACTIVE;
		if (i == 1)
			info.infiniband = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
	}
}

// What a driver says about itself is right, except for soft RoCE. A card without a PCI
// device may be one that sysfs does not show.
void try_on_demand(nic_info &info, ibv_context *device)
{
	if (!info.on_demand || !info.address.empty())
		return;
	auto verdict = detail::try_odp(device);
	info.on_demand = verdict == detail::odp_verdict::right;
	info.on_demand_wrong = verdict == detail::odp_verdict::wrong;
	info.on_demand_untried = verdict == detail::odp_verdict::untried;
}

// There is no flag for it. A kernel whose driver supports it gets far enough to find
// that -1 is not a descriptor.
bool takes_dmabufs(ibv_context *device)
{
	detail::pd_ptr pd(ibv_alloc_pd(device));

	if (!pd)
		return false;
	detail::mr_ptr none(ibv_reg_dmabuf_mr(pd.get(), 0, page_size, 0, -1,
					      IBV_ACCESS_LOCAL_WRITE));

	return none || errno == EBADF;
}

} // namespace

namespace detail {

result<nic_info> describe(ibv_context *device)
{
	nic_info info;
	ibv_device_attr_ex has{};

	info.name = ibv_get_device_name(device->device);
	if (int err = ibv_query_device_ex(device, nullptr, &has))
		return fail_errno(info.name, "ibv_query_device", err, errc::device);
	uint32_t rc = has.odp_caps.per_transport_caps.rc_odp_caps;

	info.on_demand = (has.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
			 (rc & IBV_ODP_SUPPORT_WRITE) && (rc & IBV_ODP_SUPPORT_READ);
	info.dmabuf = takes_dmabufs(device);
	info.max_read_atomic =
		static_cast<uint32_t>(std::max(has.orig_attr.max_qp_init_rd_atom, 0));
	info.max_sends = static_cast<uint32_t>(std::max(has.orig_attr.max_qp_wr, 0));
	info.max_completions =
		static_cast<uint32_t>(std::max(has.orig_attr.max_cqe, 0));
	describe_ports(info, device, has.orig_attr.phys_port_cnt);
	describe_place(info);
	try_on_demand(info, device);
	return info;
}

} // namespace detail

std::vector<nic_info> list_nics()
{
	std::vector<nic_info> all;
	int count = 0;
	detail::owned<ibv_device *, ibv_free_device_list> list(
		ibv_get_device_list(&count));

	for (int i = 0; list && i < count; i++) {
		detail::context_ptr device(ibv_open_device(list.get()[i]));

		if (!device)
			continue;
		if (auto info = detail::describe(device.get()))
			all.push_back(std::move(*info));
	}
	return all;
}

nic::nic(std::shared_ptr<detail::card> card) noexcept : card_(std::move(card)) {}
nic::nic(nic &&) noexcept = default;
nic &nic::operator=(nic &&) noexcept = default;
nic::~nic() = default;

result<nic> nic::open(context &in, std::string_view name)
{
	auto card = std::make_shared<detail::card>(in.inside());

	SLUICE_CHECK(card->open(name));
	return nic(std::move(card));
}

const nic_info &nic::info() const noexcept
{
	return card_->info;
}

} // namespace sluice

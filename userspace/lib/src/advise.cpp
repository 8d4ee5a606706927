// SPDX-License-Identifier: MIT
#include "advise.hpp"

#include <cerrno>
#include <cstddef>
#include <new>
#include <span>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

namespace sluice::detail {

namespace {

// rdma-core before version 58 does not pass the call on to soft RoCE, whose kernel
// driver has it since Linux 6.16.
int ask_soft_roce(const ibv_mr &region, ibv_sge &part) noexcept
{
	constexpr size_t length =
		sizeof(ib_uverbs_ioctl_hdr) + 4 * sizeof(ib_uverbs_attr);
	alignas(ib_uverbs_ioctl_hdr) std::byte space[length]{};
	auto &command = *new (space) ib_uverbs_ioctl_hdr{};

	command.length = length;
	command.object_id = UVERBS_OBJECT_MR;
	command.method_id = UVERBS_METHOD_ADVISE_MR;
	command.num_attrs = 4;
	command.driver_id = RDMA_DRIVER_RXE;
	for (auto &each : std::span(command.attrs, 4))
		each.flags = UVERBS_ATTR_F_MANDATORY;
	auto &domain = command.attrs[0], &advice = command.attrs[1];
	auto &flags = command.attrs[2], &list = command.attrs[3];
	domain.attr_id = UVERBS_ATTR_ADVISE_MR_PD_HANDLE;
	domain.data = region.pd->handle;
	advice.attr_id = UVERBS_ATTR_ADVISE_MR_ADVICE;
	advice.len = sizeof(uint64_t);
	advice.data = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	flags.attr_id = UVERBS_ATTR_ADVISE_MR_FLAGS;
	flags.len = sizeof(uint64_t);
	flags.data = IBV_ADVISE_MR_FLAG_FLUSH;
	list.attr_id = UVERBS_ATTR_ADVISE_MR_SGE_LIST;
	list.len = sizeof(part);
	list.data = reinterpret_cast<uintptr_t>(&part);
	return ::ioctl(region.context->cmd_fd, RDMA_VERBS_IOCTL, &command) ? errno : 0;
}

} // namespace

int find_pages(const ibv_mr &region, ibv_sge part) noexcept
{
	int err = ibv_advise_mr(region.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				IBV_ADVISE_MR_FLAG_FLUSH, &part, 1);

	return err == EOPNOTSUPP ? ask_soft_roce(region, part) : err;
}

} // namespace sluice::detail

// SPDX-License-Identifier: MIT
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "resolve.hpp"
#include "sluice/unique_fd.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

/// As long as it exists, this process can open no file.
struct no_more_files {
	no_more_files()
	{
		unique_fd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
		rlimit none{};

		::getrlimit(RLIMIT_NOFILE, &before);
		none = {static_cast<rlim_t>(next.get()), before.rlim_max};
		::setrlimit(RLIMIT_NOFILE, &none);
	}
	~no_more_files() { ::setrlimit(RLIMIT_NOFILE, &before); }

	rlimit before{};
};

struct ResolveTest : ::testing::Test {
	void SetUp() override
	{
		auto opened = context::open();

		if (!opened && opened.error().code() == errc::unsupported)
			GTEST_SKIP() << opened.error().message();
		ASSERT_TRUE(opened) << opened.error().message();
		ring.emplace(std::move(*opened));
	}

	std::optional<context> ring;
};

} // namespace

TEST_F(ResolveTest, NumbersNeedNobody)
{
	auto found = detail::resolve(*ring, "10.77.0.1", 7471, deadline{});

	ASSERT_TRUE(found) << found.error().message();
	EXPECT_EQ(found->size(), 1u);
}

TEST_F(ResolveTest, WhatThisMachineLacksIsNotThePeersFault)
{
#ifdef __SANITIZE_ADDRESS__
	GTEST_SKIP() << "this sanitizer opens a pipe to see whether memory can be read";
#endif
	std::optional<no_more_files> none(std::in_place);
	auto found = detail::resolve(*ring, "a name, no number", 7471, after(10s));

	none.reset();
	ASSERT_FALSE(found);
	EXPECT_EQ(found.error().code(), errc::system);
	EXPECT_EQ(found.error().number(), EMFILE);
	EXPECT_NE(found.error().message().find("Too many open files"),
		  std::string_view::npos)
		<< found.error().message();
}

// SPDX-License-Identifier: MIT
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "xfer/buffer.hpp"
#include "xfer/file_reader.hpp"
#include "xfer/sha256.hpp"

using namespace xfer;
namespace fs = std::filesystem;

namespace {

struct FileTest : ::testing::Test {
	void SetUp() override
	{
		char name[] = "/tmp/sluice-test.XXXXXX";

		ASSERT_NE(::mkdtemp(name), nullptr);
		dir = name;
	}
	void TearDown() override { fs::remove_all(dir); }

	std::string make(const std::string &content)
	{
		auto path = dir / "file";

		std::ofstream(path, std::ios::binary) << content;
		return path;
	}

	errc open_error(const std::string &path)
	{
		try {
			FileReader reader(path);
		} catch (const Error &e) {
			return e.code();
		}
		return errc::system;
	}

	fs::path dir;
};

} // namespace

TEST_F(FileTest, RefusesWhatIsNoFile)
{
	EXPECT_EQ(open_error(dir / "missing"), errc::input);
	EXPECT_EQ(open_error(dir), errc::input);
	EXPECT_EQ(open_error("/dev/null"), errc::input);
	EXPECT_EQ(open_error(make("")), errc::input);
}

TEST_F(FileTest, RefusesWhatCannotBeRead)
{
	auto path = make("secret");

	if (::geteuid() == 0)
		GTEST_SKIP() << "root reads everything";
	fs::permissions(path, fs::perms::none);
	EXPECT_EQ(open_error(path), errc::input);
}

TEST_F(FileTest, ReadsAllOfIt)
{
	std::string content(5 * FileReader::block + 12345, 0);
	std::mt19937 random(1);
	std::unique_ptr<Ring> ring;

	for (char &c : content)
		c = static_cast<char>(random());
	FileReader reader(make(content));
	try {
		ring = std::make_unique<Ring>(FileReader::depth + 1);
	} catch (const Error &) {
		GTEST_SKIP() << "no io_uring here";
	}
	std::string got(content.size() - 100, 0);
	ASSERT_TRUE(reader.read(*ring, std::as_writable_bytes(std::span(got)),
				100));
	EXPECT_TRUE(got == content.substr(100));
}

TEST_F(FileTest, FileThatShrinks)
{
	auto path = make(std::string(10000, 'x'));
	FileReader reader(path);
	std::string got(10000, 0);
	std::unique_ptr<Ring> ring;

	try {
		ring = std::make_unique<Ring>(FileReader::depth + 1);
	} catch (const Error &) {
		GTEST_SKIP() << "no io_uring here";
	}
	fs::resize_file(path, 5000);
	auto read = reader.read(*ring, std::as_writable_bytes(std::span(got)), 0);
	ASSERT_FALSE(read);
	EXPECT_EQ(read.error().code(), errc::input);
}

TEST(Sha256, KnownAnswer)
{
	Sha256 sha256;
	std::string abc = "abc";

	ASSERT_TRUE(sha256.update(std::as_bytes(std::span(abc).first(1))));
	ASSERT_TRUE(sha256.update(std::as_bytes(std::span(abc).subspan(1))));
	EXPECT_EQ(sha256.hex(), "ba7816bf8f01cfea414140de5dae2223"
				"b00361a396177a9cb410ff61f20015ad");
}

TEST(Buffer, AlignedAndDiscardable)
{
	Buffer buffer(3 * page_size);

	EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (2 << 20), 0u);
	buffer.data()[page_size] = std::byte{7};
	ASSERT_TRUE(buffer.discard());
	EXPECT_EQ(buffer.data()[page_size], std::byte{0});
}

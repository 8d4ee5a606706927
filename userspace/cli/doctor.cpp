// SPDX-License-Identifier: MIT
// sluice doctor: whether all is well, and what to do if not.
#include "doctor.hpp"

#include <algorithm>
#include <array>
#include <format>

#include "command.hpp"
#include "json_text.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

constexpr std::array verdict_names = {"ok", "not known", "slower", "missing"};
static_assert(verdict_names.size() == static_cast<size_t>(verdict::missing) + 1);

exit_status status_of(const checks &all)
{
	verdict worst = verdict::ok;

	for (const check &one : all)
		worst = std::max(worst, one.is);
	return worst == verdict::missing  ? exit_status::missing
	       : worst == verdict::slower ? exit_status::slower
					  : exit_status::ok;
}

size_t count(const checks &all, verdict is)
{
	return static_cast<size_t>(std::ranges::count(all, is, &check::is));
}

std::string summary(const checks &all)
{
	size_t slower = count(all, verdict::slower),
	       missing = count(all, verdict::missing);
	size_t unknown = count(all, verdict::not_known);
	std::string text = slower + missing + unknown == 0
				   ? "All is well"
				   : std::format("{} missing, {} slower than could be",
						 missing, slower);

	if (unknown)
		text += std::format("; {} not known", unknown);
	return std::format("{}. Exit status {}.", text,
			   static_cast<int>(status_of(all)));
}

std::string doctor_text(const checks &all)
{
	std::string text;
	size_t widest = 0;

	for (const check &one : all)
		widest = std::max(widest, one.name.size());
	for (const check &one : all) {
		text += hanging(
			std::format("{:<9}  {:<{}}  ", name(one.is), one.name, widest),
			one.found);
		if (!one.remedy.empty())
			text += hanging(std::format("{:<{}}", "", widest + 13) +
						"try: ",
					one.remedy);
	}
	return text + "\n" + summary(all) + "\n";
}

std::string doctor_json(const checks &all)
{
	nlohmann::json list = nlohmann::json::array();

	for (const check &one : all)
		list.push_back({{"check", one.name},
				{"verdict", name(one.is)},
				{"found", one.found},
				{"remedy", one.remedy}});
	return json_text({{"checks", std::move(list)},
			  {"missing", count(all, verdict::missing)},
			  {"slower", count(all, verdict::slower)},
			  {"not_known", count(all, verdict::not_known)},
			  {"exit_status", static_cast<int>(status_of(all))}});
}

class doctor : public command {
public:
	void add_options(CLI::App &) override {}
	result<exit_status> run(const settings &with) override
	{
		auto found = ask(with);
		checks all;

		if (!found)
			return std::unexpected(found.error());
		check_host(*found, all);
		check_gpus(*found, all);
		check_nics(*found, all);
		check_paths(*found, all);
		check_libraries(*found, all);
		*with.out << (with.json ? doctor_json(all) : doctor_text(all));
		return status_of(all);
	}
};

} // namespace

const char *name(verdict v) noexcept
{
	return verdict_names[static_cast<size_t>(v)];
}

std::unique_ptr<command> make_doctor()
{
	return std::make_unique<doctor>();
}

} // namespace sluice::cli

// SPDX-License-Identifier: MIT
// Turns what the kernel and the library report into tracks.
#include <format>
#include <unordered_map>

#include "timeline.hpp"

namespace sluice::cli {

namespace {

class reader {
public:
	explicit reader(timeline &to) : to_(to) {}

	void take(const trace_event &e);
	/// Draw what has not ended up to the end of the trace.
	void end();

private:
	struct begun {
		const trace_event *event;
		std::string group;
	};
	void batch_submitted(const trace_event &e);
	void batch_done(const trace_event &e);
	void batch_job(const trace_event &e);
	void job_queued(const trace_event &e);
	void job_ran(const trace_event &e);
	void job_done(const trace_event &e);
	void on_ring(const begun &job, const std::string &name, double end,
		     timeline::arguments args = {});
	void request(const trace_event &e);
	void completion(const trace_event &e);
	void step(const trace_event &e);
	void alias(const trace_event &e);
	void connection(const trace_event &e);

	static std::string key(const trace_event &e, const char *of = "fence")
	{
		std::string text(e.field(of));

		return text.substr(0, text.find(' ')); // "1:2 signaled"
	}
	static std::string request_of(const trace_event &e)
	{
		return std::format("{} {}", e.field("ring"), e.field("req"));
	}
	static std::string process(const trace_event &e)
	{
		return std::format("{} {}", e.task, e.pid);
	}

	timeline &to_;
	std::unordered_map<std::string, begun> batches_, queued_, jobs_, requests_;
	std::unordered_map<std::string, std::string> batch_of_; ///< by job
	/// Since when each ring of a GPU is free.
	std::map<std::pair<std::string, std::string>, double> ring_free_;
	double last_ = 0;
};

void reader::batch_submitted(const trace_event &e)
{
	batches_[key(e)] = {&e, process(e)};
}

void reader::batch_done(const trace_event &e)
{
	auto found = batches_.find(key(e));

	if (found == batches_.end())
		return; // it began before the trace
	const trace_event &began = *found->second.event;
	to_.span(found->second.group, "SDMA batches", "batch " + key(e), began.us, e.us,
		 {{"operations", began.number("descs").value_or(0)},
		  {"bytes", began.number("bytes").value_or(0)},
		  {"engines", std::string(began.field("engines"))},
		  {"error", e.number("error").value_or(0)}});
	batches_.erase(found);
}

void reader::batch_job(const trace_event &e)
{
	batch_of_[key(e, "job")] = key(e);
}

void reader::job_queued(const trace_event &e)
{
	queued_[key(e)] = {&e, process(e)};
}

void reader::job_ran(const trace_event &e)
{
	jobs_[key(e)] = {&e, "GPU " + std::string(e.field("dev"))};
}

// A ring runs one job after the other: a job that was given to it while another ran began
// when that one ended. Perfetto refuses overlapping slices on a track.
void reader::on_ring(const begun &job, const std::string &name, double end,
		     timeline::arguments args)
{
	std::string ring(job.event->field("ring"));
	double &free = ring_free_[{job.group, ring}];
	double from = std::max(job.event->us, free);

	free = std::max(from, end);
	args["in_ring_for_us"] = from - job.event->us;
	to_.slice(job.group, ring, name, from, free, std::move(args));
}

void reader::job_done(const trace_event &e)
{
	auto found = jobs_.find(key(e));

	if (found == jobs_.end())
		return;
	const trace_event &ran = *found->second.event;
	auto batch = batch_of_.find(key(e));
	auto queued = queued_.find(key(e));
	nlohmann::ordered_json args;
	if (queued != queued_.end()) {
		args["process"] = queued->second.group;
		args["queued_for_us"] = ran.us - queued->second.event->us;
	}
	on_ring(found->second,
		batch == batch_of_.end() ? "job " + key(e) : "batch " + batch->second,
		e.us, std::move(args));
	jobs_.erase(found);
}

void reader::request(const trace_event &e)
{
	requests_[request_of(e)] = {&e, process(e)};
}

void reader::completion(const trace_event &e)
{
	auto found = requests_.find(request_of(e));

	if (found == requests_.end())
		return;
	std::string what(found->second.event->field("opcode"));
	to_.span(found->second.group, "io_uring", what, found->second.event->us, e.us,
		 {{"result", e.number("result").value_or(0)}});
	requests_.erase(found);
}

void reader::step(const trace_event &e)
{
	auto begin = e.number("begin"), end = e.number("end");

	if (!begin || !end || *begin < 0 || *end < *begin)
		return;
	to_.span(process(e), std::string(e.field("step")),
		 std::format("piece {}", e.field("piece")),
		 static_cast<double>(*begin) / 1e3, static_cast<double>(*end) / 1e3);
}

void reader::alias(const trace_event &e)
{
	std::string of = e.text.substr(0, e.text.find(' '));

	to_.instant("Memory of " + of, e.name, e.name, e.us,
		    {{"pages", e.number("nr").value_or(0)},
		     {"by", process(e)},
		     {"reason", std::string(e.field("reason"))}});
}

void reader::connection(const trace_event &e)
{
	to_.instant(process(e), "rdma_cm", e.name, e.us, {{"text", e.text}});
}

void reader::take(const trace_event &e)
{
	static const std::unordered_map<std::string_view,
					void (reader::*)(const trace_event &)>
		table = {
			{"amdgpu_sdma_batch_submit", &reader::batch_submitted},
			{"amdgpu_sdma_batch_done", &reader::batch_done},
			{"amdgpu_sdma_batch_job", &reader::batch_job},
			{"drm_sched_job_queue", &reader::job_queued},
			{"drm_sched_job_run", &reader::job_ran},
			{"drm_sched_job_done", &reader::job_done},
			{"io_uring_submit_req", &reader::request},
			{"io_uring_complete", &reader::completion},
			{"sluice", &reader::step},
			{"hmm_alias_map", &reader::alias},
			{"hmm_alias_fallback", &reader::alias},
			{"dev_pagemap_revoke_alias", &reader::alias},
		};
	auto found = table.find(e.name);

	last_ = std::max(last_, e.us);
	if (found != table.end())
		(this->*found->second)(e);
	else if (e.name.starts_with("cm_"))
		connection(e);
}

void reader::end()
{
	std::map<const trace_event *, const begun *> given;

	// In the order in which the rings got them.
	for (const auto &[fence, job] : jobs_)
		given[job.event] = &job;
	for (const auto &[event, job] : given)
		on_ring(*job, "job " + key(*event) + ", not done", last_);
	for (const auto &[fence, batch] : batches_)
		to_.span(batch.group, "SDMA batches", "batch " + fence + ", not done",
			 batch.event->us, last_);
}

/// Rates between consecutive samples of the same counter.
void add_counters(timeline &to, const std::vector<nic_sample> &samples)
{
	std::map<std::pair<std::string, std::string>, nic_sample> before;

	for (const nic_sample &now : samples) {
		auto [at, first] = before.try_emplace({now.nic, now.counter}, now);
		double seconds = (now.us - at->second.us) / 1e6;
		uint64_t counted = counted_since(at->second.value, now.value);

		if (!first && seconds > 0)
			to.counter("NIC " + now.nic, now.counter + " a second", now.us,
				   static_cast<double>(counted) / seconds);
		at->second = now;
	}
}

} // namespace

timeline timeline_of(const std::vector<trace_event> &events,
		     const std::vector<nic_sample> &samples)
{
	timeline all;
	reader from(all);

	for (const trace_event &e : events)
		from.take(e);
	from.end();
	add_counters(all, samples);
	return all;
}

} // namespace sluice::cli

// An HTTP server that classifies handwritten digits.
//   POST /classify   body: n x 64 bytes, each pixel 0..16. Answer: JSON, or with "Accept:
//   application/octet-stream"
//                    n x 10 float32 probabilities, little endian
//   GET /healthz     {"status":"ok",...}
// Stops cleanly on SIGTERM and SIGINT.
#include <httplib.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

#include "network.h"

namespace {

using digits::kClasses;
using digits::kPixels;

struct Options {
    std::string host = "127.0.0.1";
    int port = 8080;
    int max_batch = 256;
};

[[noreturn]] void usage_error(const std::string& what) {
    std::fprintf(
        stderr,
        "inference_server: %s (usage: inference_server [--host H] [--port P] [--max-batch N])\n",
        what.c_str());
    std::exit(2);
}

int number(const char* option, const std::string& text, int low, int high) {
    int v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || end != text.data() + text.size() || v < low || v > high)
        usage_error(std::string(option) + " '" + text + "': a number from " + std::to_string(low) +
                    " to " + std::to_string(high) + " is needed");
    return v;
}

Options parse(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--help" || name == "-h") {
            std::puts(
                "usage: inference_server [--host H] [--port P (0: any free one)] [--max-batch N]");
            std::exit(0);
        }
        if (name != "--host" && name != "--port" && name != "--max-batch")
            usage_error("unknown option '" + name + "'");
        if (i + 1 == argc) usage_error(name + " needs a value");
        const std::string value = argv[++i];
        if (name == "--host") o.host = value;
        if (name == "--port") o.port = number("--port", value, 0, 65535);
        if (name == "--max-batch") o.max_batch = number("--max-batch", value, 1, 4096);
    }
    return o;
}

std::string as_json(const std::vector<float>& probabilities) {
    const size_t n = probabilities.size() / kClasses;
    std::string labels, rows;
    for (size_t i = 0; i < n; ++i) {
        const float* row = probabilities.data() + i * kClasses;
        const auto best = std::max_element(row, row + kClasses) - row;
        labels += (i != 0 ? "," : "") + std::to_string(best);
        rows += i != 0 ? ",[" : "[";
        for (int c = 0; c < kClasses; ++c) {
            char text[32];
            std::snprintf(text, sizeof text, "%s%.9g", c != 0 ? "," : "",
                          static_cast<double>(row[c]));
            rows += text;
        }
        rows += "]";
    }
    return "{\"labels\":[" + labels + "],\"probabilities\":[" + rows + "]}\n";
}

void answer_error(httplib::Response& response, int status, const std::string& what) {
    std::string escaped;
    for (char c : what) {
        if (c == '"' || c == '\\') escaped += '\\';
        escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    response.status = status;
    response.set_content("{\"error\":\"" + escaped + "\"}\n", "application/json");
}

void classify(digits::Network& network, const httplib::Request& request,
              httplib::Response& response) {
    const std::string& body = request.body;
    if (body.empty() || body.size() % kPixels != 0)
        return answer_error(response, 400,
                            "the body must hold a whole number of images, 64 bytes each, not " +
                                std::to_string(body.size()) + " bytes");
    if (body.size() / kPixels > static_cast<size_t>(network.max_batch()))
        return answer_error(
            response, 413,
            "at most " + std::to_string(network.max_batch()) + " images per request");
    const auto bad =
        std::find_if(body.begin(), body.end(), [](char c) { return static_cast<uint8_t>(c) > 16; });
    if (bad != body.end())
        return answer_error(response, 400,
                            "pixels are 0 to 16; byte " + std::to_string(bad - body.begin()) +
                                " is " + std::to_string(static_cast<uint8_t>(*bad)));
    std::vector<float> p;
    try {
        p = network.classify({reinterpret_cast<const uint8_t*>(body.data()), body.size()});
    } catch (const std::exception& e) {
        return answer_error(response, 500, e.what());
    }
    if (request.get_header_value("Accept") == "application/octet-stream") {
        response.set_content(reinterpret_cast<const char*>(p.data()), p.size() * sizeof(float),
                             "application/octet-stream");
    } else {
        response.set_content(as_json(p), "application/json");
    }
}

int serve(const Options& options, const sigset_t& stop_signals) {
    digits::Network network(options.max_batch);
    if (!network.note().empty())
        std::fprintf(stderr, "inference_server: %s\n", network.note().c_str());
    std::atomic<uint64_t> requests{0};
    httplib::Server server;
    server.new_task_queue = [] { return new httplib::ThreadPool(4); };
    server.set_payload_max_length(static_cast<size_t>(options.max_batch) * kPixels * 4);
    server.set_keep_alive_max_count(1u << 30);
    server.set_keep_alive_timeout(2);
    server.set_tcp_nodelay(true);
    server.Post("/classify", [&](const httplib::Request& request, httplib::Response& response) {
        requests.fetch_add(1, std::memory_order_relaxed);
        classify(network, request, response);
    });
    server.Get("/healthz", [&](const httplib::Request&, httplib::Response& response) {
        response.set_content("{\"status\":\"ok\",\"device\":\"" + network.device_name() +
                                 "\",\"max_batch\":" + std::to_string(network.max_batch()) +
                                 ",\"requests\":" + std::to_string(requests.load()) + "}\n",
                             "application/json");
    });
    int port = options.port;
    if (port == 0)
        port = server.bind_to_any_port(options.host);
    else if (!server.bind_to_port(options.host, port))
        port = -1;
    if (port <= 0) {
        std::fprintf(stderr, "inference_server: cannot listen on %s:%d: %s\n", options.host.c_str(),
                     options.port, std::strerror(errno));
        return 1;
    }
    std::printf("listening on http://%s:%d (%s)\n", options.host.c_str(), port,
                network.device_name().c_str());
    std::fflush(stdout);
    std::thread stopper([&] {
        int signal = 0;
        sigwait(&stop_signals, &signal);
        server.stop();
    });
    const bool clean = server.listen_after_bind();
    pthread_kill(stopper.native_handle(), SIGTERM);  // no effect when it has already woken
    stopper.join();
    return clean ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    sigset_t stop_signals;
    sigemptyset(&stop_signals);
    sigaddset(&stop_signals, SIGTERM);
    sigaddset(&stop_signals, SIGINT);
    // Blocked before any thread starts, so that only the waiting thread sees them.
    pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
    try {
        return serve(options, stop_signals);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "inference_server: %s\n", e.what());
        return 1;
    }
}

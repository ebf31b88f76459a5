// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terraced: options, and the one place where sense, decide and act meet: a volume is its
 * control device (act) with a sense behind it, and a loop that decides (service/drivers.c
 * opens one for each).
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "act/device.h"
#include "sense/health.h"
#include "sense/heat.h"
#include "sense/trace.h"
#include "service/service.h"

static const char help[] =
	"usage: terraced [OPTION]...\n"
	"       terraced --check-config [--config FILE]\n"
	"       terraced --status | --explain [VOLUME] | --show-config\n"
	"\n"
	"Decides which blocks of Terrace volumes live on the fast drives, and orders the moves.\n"
	"Volumes are found as they come and go. It may be stopped, killed and started at any time:\n"
	"the kernel part keeps the data safe and makes room by age meanwhile.\n"
	"\n"
	"  -c, --config FILE   configuration (default /etc/terrace/terraced.conf, which may be missing)\n"
	"  -n, --volume NAME   drive only this volume\n"
	"  -e, --evaluate      decide and explain, but order nothing\n"
	"  -v, --verbose       log every decision with its score\n"
	"      --check-config  read the configuration, tell what is wrong with it, and end\n"
	"      --status        ask the running daemon for its state, as JSON\n"
	"      --explain [VOLUME]\n"
	"                      ask it for its last decisions: what, why, score, result\n"
	"      --show-config   ask it for every key with its value, and which of them wait\n"
	"                      for the next start\n"
	"  -h, --help\n"
	"\n"
	"Signals: SIGHUP reads the configuration anew; one with errors changes nothing.\n"
	"SIGTERM and SIGINT stop cleanly.\n"
	"\n"
	"Examples:\n"
	"  terraced --check-config --config ./terraced.conf\n"
	"  terraced --evaluate --verbose --volume data\n"
	"  terraced --status | jq '.volumes[].moves'\n"
	"\n"
	"Exit status: 0 done, 1 failed or the configuration has errors, 2 wrong usage.\n";

static int usage(const char *what)
{
	fprintf(stderr, "terraced: %s\nTry: terraced --help\n", what);
	return 2;
}

/* ---- volumes ---------------------------------------------------------------------- */

static int set_heat_sample(void *port, uint32_t n)
{
	return device_set_heat_sample(port, n);
}

static int set_slow_sample(void *port, uint32_t n)
{
	return device_set_slow_sample(port, n);
}

/* Perf has each slow read counted as one: a BPF sense that was killed may have left fewer to be told. */
static void have_each_slow_read_told(const char *name, struct port *port)
{
	int err = device_slow_sample(port) > 1 ? device_set_slow_sample(port, 1) : 0;

	if (err)
		log_line(LOG_LEVEL_WARNING, name, "the kernel tells of one in %u reads of slow tiers, and cannot be told otherwise: %s",
			 device_slow_sample(port), strerror(-err));
}

/* The best that works of those allowed; what does not is told once, with what is used instead. */
static int open_sense(const char *name, const struct settings *settings, struct port *port,
		      struct sense **sense, char *why, size_t bytes)
{
	unsigned int major = device_major(port), minor = device_minor(port);
	enum sense_kind kind = settings->sense;
	const struct heat_module module = {
		.now = device_heat_sample(port), .most = settings->heat_sample, .set = set_heat_sample,
		.slow_now = device_slow_sample(port), .set_slow = set_slow_sample, .ctx = port,
	};
	int err = -ENOENT;

	if (kind == SENSE_AUTO || kind == SENSE_BPF) {
		err = heat_open(major, minor, &module, sense, why, bytes);
		if (!err && why[0])
			log_line(LOG_LEVEL_NOTICE, name, "%s", why);
		if (err && kind == SENSE_AUTO)
			log_line(LOG_LEVEL_NOTICE, name, "%s: blocks are sensed through perf instead", why);
	}
	if (err && (kind == SENSE_AUTO || kind == SENSE_ACCESS)) {
		have_each_slow_read_told(name, port);
		err = trace_open(TRACE_ACCESS, major, minor, device_heat_sample(port), sense, why, bytes);
	}
	if (err && (kind == SENSE_AUTO || kind == SENSE_BLOCK))
		err = trace_open(TRACE_BLOCK, major, minor, settings->sampling, sense, why, bytes);
	return err;
}

static const char *add_sense(const char *name, const struct settings *settings, struct port *port)
{
	struct sense *sense = NULL;
	char why[200] = "";

	if (settings->sense == SENSE_NONE)
		return "none";
	if (open_sense(name, settings, port, &sense, why, sizeof(why))) {
		log_line(LOG_LEVEL_WARNING, name, "blocks cannot be sensed: %s", why);
		return "none";
	}
	device_set_sense(port, sense);
	return sense->name;
}

static int open_volume(const char *name, struct port **out)
{
	char why[300];
	int err = device_open(name, out, why, sizeof(why));

	if (err)
		log_line(LOG_LEVEL_ERROR, name, "cannot be driven: %s", why);
	return err;
}

static const char *sense_volume(const char *name, const struct settings *settings, struct port *port)
{
	const char *sense = add_sense(name, settings, port);
	bool unknown;

	port->health = health_open(device_major(port), device_minor(port), &unknown);
	if (unknown)
		log_line(LOG_LEVEL_NOTICE, name, "its drives cannot be asked for their wear (that takes CAP_SYS_ADMIN): endurance goes by what is counted here");
	return sense;
}

static struct follow *follow_volume(const char *name, const struct settings *settings, struct port *port)
{
	return follow_open(name, settings, port, device_major(port), device_minor(port));
}

/* ---- configuration ------------------------------------------------------------------ */

static void told(void *ctx, int line, const char *reason)
{
	fprintf(stderr, "%s:%d: %s\n", (const char *)ctx, line, reason);
}

/* @given: named by the user, so it must be there. */
static int load(struct config *c, const char *path, bool given)
{
	int n = config_load(c, path, told, (void *)path);

	if (n == -ENOENT && !given) {
		config_defaults(c);
		return 0;
	}
	if (n < 0) {
		fprintf(stderr, "terraced: %s: %s\n", path, strerror(-n));
		return 1;
	}
	return n ? 1 : 0;
}

/* ---- asking a running daemon ----------------------------------------------------------- */

/* By the file as it is now, which a running daemon may be behind. */
static int ask(const struct service *s, const char *request)
{
	const char *path = s->config.socket;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[4096];
	ssize_t n;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    dprintf(fd, "%s\n", request) < 0) {
		fprintf(stderr, "terraced: %s: %s: is the daemon running? Asked where %s has its socket: changed, that waits for the daemon's next start\n",
			path, strerror(errno), s->config_path);
		return 1;
	}
	while ((n = read(fd, answer, sizeof(answer))) > 0)
		fwrite(answer, 1, (size_t)n, stdout);
	close(fd);
	return n < 0;
}

/* ---- options ----------------------------------------------------------------------------- */

struct options {
	const char *config, *volume;
	bool check, verbose, evaluate;
	const char *asked;	/* of a running daemon */
	char request[128];
};

enum { CHECK = 256, STATUS, EXPLAIN, SHOW };

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{ "config", required_argument, NULL, 'c' }, { "volume", required_argument, NULL, 'n' },
		{ "evaluate", no_argument, NULL, 'e' }, { "verbose", no_argument, NULL, 'v' },
		{ "check-config", no_argument, NULL, CHECK }, { "status", no_argument, NULL, STATUS },
		{ "explain", no_argument, NULL, EXPLAIN }, { "show-config", no_argument, NULL, SHOW },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:n:evh", table, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->config = optarg;
			break;
		case 'n':
			o->volume = optarg;
			break;
		case 'e':
			o->evaluate = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case CHECK:
			o->check = true;
			break;
		case STATUS:
		case EXPLAIN:
		case SHOW:
			o->asked = c == STATUS ? "status" : c == SHOW ? "config" : "explain";
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		default:
			fputs("Try: terraced --help\n", stderr);
			return 2;
		}
	}
	if (o->asked) {
		const char *what = optind < argc && !strcmp(o->asked, "explain") ? argv[optind++] : "";

		snprintf(o->request, sizeof(o->request), "%s%s%.100s", o->asked, *what ? " " : "", what);
	}
	return optind < argc ? usage("too many arguments") : 0;
}

int main(int argc, char **argv)
{
	static struct service service;
	struct options o = { 0 };
	int err = parse(&o, argc, argv);

	if (err)
		return err;
	service.config_path = o.config ? o.config : CONFIG_PATH;
	service.open = open_volume;
	service.sense = sense_volume;
	service.follow = follow_volume;
	service.only = o.volume;
	if (load(&service.config, service.config_path, o.config || o.check))
		return 1;
	if (o.check) {
		printf("%s: no errors\n", service.config_path);
		return 0;
	}
	if (o.request[0])
		return ask(&service, o.request);
	service.verbose = o.verbose;
	service.evaluate = o.evaluate;
	service_overrule(&service, &service.config);
	log_set_level(service.config.log_level);
	return service_run(&service);
}

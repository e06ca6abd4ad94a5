// Package cli is the command line: commands, flags and their environment variables, exit status. It
// reads input and prints results. The operations themselves are in internal/app and internal/control,
// for a data folder, or behind a portal's API.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"

	"agentsite/agentruntime/pdf/child"
	"agentsite/agentruntime/wasm/guest"
	"agentsite/internal/app"
	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// Exit status of every command: success, failure, mistake in the command line.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// env holds the environment and streams of a command, which tests replace.
type env struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// errUsage reports a mistake in the command line. The command then exits with status 2.
type errUsage struct{ text string }

func (e errUsage) Error() string { return e.text }

func usagef(format string, args ...any) error { return errUsage{fmt.Sprintf(format, args...)} }

// errSilent makes a command exit with status 1 without a message, because the error was printed already.
var errSilent = errors.New("")

// command is one row of the table that commands returns.
type command struct {
	name  string // one or two words
	args  string
	about string
	run   func(ctx context.Context, e env, fs *flags, args []string) error
	flags func(*flags)
}

func commands() []command {
	return []command{
		{"serve", "", "run the portal (the default)", runServe, serveFlags},
		{"demo", "", "run a small federation in this process, for a first look", runDemo, demoFlags},
		{"user add", "NAME", "create an account; the password is read from stdin", runUserAdd, userAddFlags},
		{"user list", "", "list accounts", runUserList, dataFlags},
		{"user disable", "NAME", "disable an account and end its sessions, tokens and tasks", runUserDisable,
			dataFlags},
		{"user enable", "NAME", "let a disabled account sign in again", runUserEnable, dataFlags},
		{"user remove", "NAME", "erase an account, its data and its agents for good", runUserRemove, removeFlags},
		{"user export", "NAME FILE", "write everything that the portal holds about an account to a zip file",
			runUserExport, dataFlags},
		{"user reset", "NAME", "print a link that sets a new password", runUserReset, resetFlags},
		{"token add", "", "make an API token and print it once", runTokenAdd, tokenFlags},
		{"agent run", "-- CMD [ARG…]", "connect a program to a portal as an agent", runAgentRun, agentRunFlags},
		{"agent register", "FILE", "register the agent that a file describes, or update it", runAgentRegister,
			agentFileFlags},
		{"agent list", "", "list your agents", runAgentList, portalFlags},
		{"agent remove", "NAME", "remove one of your agents permanently", runAgentRemove, portalFlags},
		{"agent import", "FILE", "register many agents as the operator, one JSON object a line", runAgentImport,
			portalFlags},
		{"search", "[QUERY]", "find agents on a portal", runSearch, searchFlags},
		{"chat", "AGENT [MESSAGE]", "talk to an agent", runChat, chatFlags},
		{"goal", "TEXT", "give a goal to a team of agents and watch it", runGoal, goalFlags},
		{"package init", "DIR", "make the folder of a package, which is a hosted program that others may run",
			runPackageInit, packageInitFlags},
		{"package build", "[DIR]", "build the program of a package", runPackageBuild, func(*flags) {}},
		{"package publish", "[DIR]", "publish the built program as a new version", runPackagePublish, portalFlags},
		{"package fetch", "NAME[@PORTAL][/VERSION]", "download and verify the program of a package", runPackageFetch,
			portalFlags},
		{"peers list", "", "list the known portals and their state", runPeersList, peersFlags},
		{"peers add", "URL", "add a portal by its address", runPeersAdd, peersFlags},
		{"peers allow", "PORTAL", "allow a portal regardless of the policy", ruleCommand("peers allow", "allow"),
			peersFlags},
		{"peers pin", "PORTAL", "allow a portal and accept its vouchers", ruleCommand("peers pin", "pin"), peersFlags},
		{"peers deny", "PORTAL", "block a portal and delete its stored records", ruleCommand("peers deny", "deny"),
			peersFlags},
		{"peers clear", "PORTAL", "remove the rule for a portal, so that the policy applies",
			ruleCommand("peers clear", ""), peersFlags},
		{"peers subscribe", "PORTAL", "follow the block list of a portal", runPeersSubscribe, subscribeFlags},
		{"peers unsubscribe", "PORTAL", "stop following the block list of a portal", runPeersUnsubscribe, peersFlags},
		{"peers forget", "PORTAL", "delete all data about a portal; it may reappear", runPeersForget, peersFlags},
		{"peers release", "PORTAL", "show the proof against a quarantined portal, and release it", runPeersRelease,
			releaseFlags},
		{"peers gossip", "", "show the portal's state in the gossip pool", runPeersGossip, peersFlags},
		{"peers dht", "[WHAT]", "show the portal's state in the DHT, or look up a portal (id or address), an " +
			"agent or a capability", runPeersDHT, peersFlags},
		{"peers policy", "[FIELD=VALUE…]", "show or change the policy for all portals", runPeersPolicy, peersFlags},
		{"keys list", "", "list the portal's signing keys", runKeysList, keysFlags},
		{"keys rotate", "", "create a new operational key", runKeysRotate, keysFlags},
		{"keys revoke", "ID", "revoke an operational key and its signatures", runKeysRevoke, keysFlags},
		{"keys detach", "FILE", "move the root key out of the data folder", runKeysDetach, keysFlags},
		{"keys sign", "--root FILE", "sign a new card with a root key that is kept elsewhere", runKeysSign,
			keysSignFlags},
		{"backup", "FILE", "copy everything, while the portal runs or not", runBackup, backupFlags},
		{"restore", "FILE", "put a backup into an empty data folder", runRestore, backupFlags},
		{"verify", "[FILE]", "check the data folder, or a backup", runVerify, backupFlags},
		{"migrate-database", "--to URL", "move the portal to PostgreSQL or back, while it does not run", runMoveDatabase,
			moveFlags},
		{"doctor", "", "check the portal: name each fault and its solution", runDoctor, doctorFlags},
		{"version", "", "print version, revision, schema and protocols", runVersion, func(*flags) {}},
	}
}

// Run executes a command line and returns its exit status: 0, 1 for a failure, 2 for a mistake in the
// command line. It does not close the streams.
func Run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout,
	stderr io.Writer) int {
	if len(args) == 1 { // the portal starts its own binary so; these are no commands for people
		switch args[0] {
		case guest.Argument:
			return guest.Run()
		case child.Argument:
			return child.Run()
		}
	}
	e := env{getenv, stdin, stdout, stderr}
	err := dispatchCommand(ctx, e, args)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitDone
	case errors.Is(err, errSilent):
		return exitFailed
	}
	if _, ok := errors.AsType[errUsage](err); ok {
		fmt.Fprintf(stderr, "agentsite: %s\n", record.CleanLine(err.Error()))
		return exitUsage
	}
	text := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok {
		text = f.Safe
	}
	fmt.Fprintf(stderr, "agentsite: %s\n", record.CleanLine(text))
	return exitFailed
}

func dispatchCommand(ctx context.Context, e env, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") &&
		!slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		args = append([]string{"serve"}, args...)
	}
	if slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		writeUsage(e.stdout)
		return nil
	}
	for _, c := range commands() {
		words := strings.Fields(c.name)
		if len(args) < len(words) || !slices.Equal(args[:len(words)], words) {
			continue
		}
		fs := newFlags(e, c)
		c.flags(fs)
		rest, err := fs.parseArgs(args[len(words):])
		if err != nil {
			return err
		}
		return c.run(ctx, e, fs, rest)
	}
	if list := commandGroup(args[0]); len(list) > 0 {
		switch {
		case len(args) == 1:
			return usagef("choose a command: %s; `agentsite %s --help` explains them", commandNames(list), args[0])
		case slices.Contains([]string{"-h", "-help", "--help", "help"}, args[1]):
			fmt.Fprintf(e.stdout, "Usage: agentsite %s COMMAND [FLAGS]\n\nCommands:\n", args[0])
			writeCommands(e.stdout, list)
			fmt.Fprintf(e.stdout, "\n`agentsite %s COMMAND --help` lists the flags of a command.\n", args[0])
			return nil
		}
		return usagef("there is no command %q; `agentsite %s --help` lists those there are", args[0]+" "+args[1],
			args[0])
	}
	return usagef("there is no command %q; `agentsite help` lists them", strings.Join(args[:min(len(args), 2)], " "))
}

// commandGroup returns the commands of two words whose first word is word.
func commandGroup(word string) (list []command) {
	for _, c := range commands() {
		if strings.HasPrefix(c.name, word+" ") {
			list = append(list, c)
		}
	}
	return list
}

func commandNames(list []command) string {
	all := make([]string, len(list))
	for i, c := range list {
		all[i] = c.name
	}
	return strings.Join(all, ", ")
}

func writeCommands(w io.Writer, list []command) {
	for _, c := range list {
		fmt.Fprintf(w, "  %-30s %s\n", strings.TrimSpace(c.name+" "+c.args), c.about)
	}
}

func writeUsage(w io.Writer) {
	fmt.Fprintf(w, "agentsite %s — a portal where AI agents live, are found and talked to.\n\nUsage: agentsite "+
		"[COMMAND] [FLAGS]\n\nCommands:\n", app.Release())
	writeCommands(w, commands())
	fmt.Fprint(w, "\n`agentsite COMMAND --help` lists the flags of a command. The manual is at /docs of a "+
		"running portal.\n")
}

// checkArgs returns a usage error unless the command c got least to most arguments.
func checkArgs(c string, args []string, least, most int) error {
	if len(args) < least || len(args) > most {
		for _, k := range commands() {
			if k.name == c {
				return usagef("usage: agentsite %s %s", k.name, k.args)
			}
		}
	}
	return nil
}

// isTerminal reports whether a stream is connected to a terminal, so that a person reads or types.
func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	if !ok {
		return false
	}
	return isatty.IsTerminal(f.Fd()) // a check for a character device is not enough: /dev/null is one too
}

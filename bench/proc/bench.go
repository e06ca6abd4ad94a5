package proc

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/bench/report"
)

// Bench is the common part of all benchmarks with rows: the flags, a folder for data, the table, and
// the calibration of the machine before and after. One goroutine uses it.
type Bench struct {
	report.Table
	Flags  *flag.FlagSet
	Rounds int
	Round  time.Duration
	Quick  bool
	// Dir is a temporary folder that Run creates and removes. Portal is the path of the portal's
	// binary.
	Dir, Portal string
	// Rows are the names of all rows in order. The rows in Extra run only when the flag -rows names
	// them.
	Rows, Extra []string

	want string
	temp string
}

// Init defines the command-line flags. The caller may define more before Run.
func (b *Bench) Init(name string) {
	b.Out = os.Stdout
	b.Flags = flag.NewFlagSet(name, flag.ContinueOnError)
	defaults := slices.DeleteFunc(slices.Clone(b.Rows), func(r string) bool { return slices.Contains(b.Extra, r) })
	b.Flags.StringVar(&b.want, "rows", strings.Join(defaults, ","), "rows to measure, of "+strings.Join(b.Rows, ","))
	b.Flags.IntVar(&b.Rounds, "rounds", b.Rounds, "rounds that count in each row")
	b.Flags.DurationVar(&b.Round, "round", b.Round, "length of a round of each side")
	b.Flags.BoolVar(&b.Quick, "quick", false, "two short rounds with less data, to see that the bench works")
	b.Flags.StringVar(&b.Portal, "portal", "", "`PATH` of the portal's binary (default: built from this tree)")
	b.Flags.StringVar(&b.temp, "temp", "", "`DIR` for data, on the disk that is to be measured")
}

// Run parses the arguments, measures the rows, prints the table, and returns an
// error if a bar is missed. prepare, if any, runs before the first row.
func (b *Bench) Run(args []string, prepare func() error, row func(name string) error) (err error) {
	if err := b.Flags.Parse(args); err != nil {
		return err
	}
	list := strings.Split(b.want, ",")
	for _, r := range list {
		if !slices.Contains(b.Rows, r) {
			return fmt.Errorf("there is no row %q; the rows are %s", r, strings.Join(b.Rows, ", "))
		}
	}
	if b.Rounds < 1 || b.Round <= 0 {
		return fmt.Errorf("-rounds and -round must be above 0")
	}
	if b.Quick {
		b.Rounds, b.Round = min(b.Rounds, 2), min(b.Round, 400*time.Millisecond)
	}
	if b.Dir, err = os.MkdirTemp(b.temp, b.Flags.Name()+"-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.Dir)
	began := time.Now()
	first, err := Calibrate(b.Dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "before: %s\n", first)
	if prepare != nil {
		if err := prepare(); err != nil {
			return err
		}
	}
	for _, r := range b.Rows {
		if !slices.Contains(list, r) {
			continue
		}
		at := time.Now()
		if err := row(r); err != nil {
			return fmt.Errorf("row %s: %w", r, err)
		}
		fmt.Fprintf(b.Out, "row %s took %s\n", r, time.Since(at).Round(100*time.Millisecond))
	}
	last, err := Calibrate(b.Dir)
	if err != nil {
		return err
	}
	b.Slow = Slow(first, last)
	if b.Quick && b.Slow == "" {
		b.Slow = "-quick is too short"
	}
	missed := b.Print()
	fmt.Fprintf(b.Out, "\nbefore: %s\nafter: %s\n%d rounds of %s, %s in all, %s\n", first, last, b.Rounds, b.Round,
		time.Since(began).Round(time.Second), time.Now().Format(time.DateOnly))
	if missed > 0 {
		return fmt.Errorf("%d bars missed", missed)
	}
	return nil
}

// Wants reports whether the flags select the row.
func (b *Bench) Wants(row string) bool { return slices.Contains(strings.Split(b.want, ","), row) }

// BuildPortal builds the portal from this source tree into Dir unless a flag names a binary.
func (b *Bench) BuildPortal() error {
	if b.Portal != "" {
		return nil
	}
	b.Portal = filepath.Join(b.Dir, "agentsite")
	return Build(b.Portal, ".")
}

// Serve starts the portal on a data folder, on a free loopback port. The caller must end the process.
func (b *Bench) Serve(dir string) (*Process, error) { return b.ServeAt("127.0.0.1:0", dir) }

// ServeAt starts the portal on a data folder at the address listen (host:port). The caller must end the
// process.
func (b *Bench) ServeAt(listen, dir string) (*Process, error) {
	return Start("portal", b.Portal, "serve", "--listen", listen, "--data", dir, "--log-level", "warn")
}

// Pick returns quick if the flag -quick is given, else full.
func (b *Bench) Pick(quick, full int) int {
	if b.Quick {
		return quick
	}
	return full
}

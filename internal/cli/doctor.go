package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"agentsite/internal/control"
	"agentsite/internal/record"
)

func doctorFlags(fs *flags) {
	keysFlags(fs)
	fs.addSetting(&fs.cfg.URL, "url", "AGENTSITE_URL", "the portal's `URL`, when it does not run and has none stored")
	fs.addSetting(&fs.cfg.AllowCIDR, "allow-cidr", "AGENTSITE_ALLOW_CIDR",
		"private address `RANGES` that may be called, when it does not run")
	fs.StringVar(&fs.agentName, "agent", "", "follow the agent with this `NAME` to another portal, step by step")
	fs.StringVar(&fs.portal, "portal", "", "the other portal: its `URL`, host or id; with --agent")
	fs.BoolVar(&fs.json, "json", false, "print the findings as one JSON object")
}

// runDoctor prints the findings and exits with status 1 if there is a fault.
func runDoctor(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("doctor", args, 0, 0); err != nil {
		return err
	}
	if fs.portal != "" && fs.agentName == "" {
		return usagef("--portal goes with --agent: agentsite doctor --agent NAME --portal URL")
	}
	r, err := control.Doctor(ctx, fs.cfg, fs.agentName, fs.portal, e.stderr)
	if err != nil {
		return err
	}
	if fs.json {
		if err := json.NewEncoder(e.stdout).Encode(r); err != nil {
			return err
		}
	} else {
		writeDiagnosis(e.stdout, r)
	}
	if !r.Healthy {
		return errSilent
	}
	return nil
}

// writeDiagnosis prints a line for each finding and, below it, the action to take.
func writeDiagnosis(w io.Writer, r control.Diagnosis) {
	faults := 0
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%-7s  %-11s  %s\n", f.Level, f.Check, record.CleanLine(f.Text))
		if f.Do != "" {
			fmt.Fprintf(w, "%20s  → %s\n", "", record.CleanLine(f.Do))
		}
		if f.Level == "fault" {
			faults++
		}
	}
	state := "runs"
	if !r.Running {
		state = "does not run"
	}
	switch faults {
	case 0:
		fmt.Fprintf(w, "\nNo fault was found. The portal %s.\n", state)
	case 1:
		fmt.Fprintf(w, "\n1 fault was found. The portal %s.\n", state)
	default:
		fmt.Fprintf(w, "\n%d faults were found. The portal %s.\n", faults, state)
	}
}

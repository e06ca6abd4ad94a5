package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"
	"time"

	"agentsite/internal/control"
)

func runKeysList(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("keys list", args, 0, 0); err != nil {
		return err
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		s, err := c.Keys(ctx)
		if err != nil {
			return err
		}
		root := "in the data folder"
		if s.Away {
			root = "kept elsewhere"
		}
		card := "none"
		if !s.Expires.IsZero() {
			card = "good until " + s.Expires.UTC().Format(time.DateOnly)
		}
		fmt.Fprintf(e.stdout, "portal   %s\nnetwork  %s\nroot     %s\ncard     %s\n\n", s.Portal, s.Network, root, card)
		w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "KEY\tFROM\tUNTIL\tSTATE")
		for _, k := range s.Keys {
			state := "in the card"
			if k.Signs {
				state = "signs now"
			} else if !k.Listed {
				state = "waits for a new card"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.ID, k.From.UTC().Format(time.DateOnly),
				k.Until.UTC().Format(time.DateOnly), state)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if s.Due != "" {
			fmt.Fprintf(e.stdout, "\n%s Sign a new card: agentsite keys sign --root FILE\n", s.Due)
		}
		return nil
	})
}

func runKeysRotate(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("keys rotate", args, 0, 0); err != nil {
		return err
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		id, err := c.RotateKeys(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "created the key %s\n", id)
		return remindSigning(ctx, e, c)
	})
}

func runKeysRevoke(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("keys revoke", args, 1, 1); err != nil {
		return err
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		if err := c.RevokeKey(ctx, args[0]); err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "revoked %s\n", args[0])
		return remindSigning(ctx, e, c)
	})
}

// remindSigning prints a reminder if the change takes effect only after a new card was signed with the
// root key.
func remindSigning(ctx context.Context, e env, c control.Control) error {
	s, err := c.Keys(ctx)
	if err == nil && s.Due != "" {
		fmt.Fprintf(e.stdout, "%s It counts once a new card is signed: agentsite keys sign --root FILE\n", s.Due)
	}
	return err
}

func runKeysDetach(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("keys detach", args, 1, 1); err != nil {
		return err
	}
	path, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		if err := c.DetachRoot(ctx, path); err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "the root key is now only in %s; keep two copies of it\n", path)
		return nil
	})
}

func runKeysSign(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("keys sign", args, 0, 0); err != nil {
		return err
	}
	if fs.root == "" {
		return usagef("name the file that holds the root key: agentsite keys sign --root FILE")
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		if err := control.SignCard(ctx, c, fs.root); err != nil {
			return err
		}
		s, err := c.Keys(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "signed a card that is good until %s\n", s.Expires.UTC().Format(time.DateOnly))
		return nil
	})
}

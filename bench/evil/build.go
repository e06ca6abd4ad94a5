package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// change replaces one fragment of a source file, from, by code with a switch for the check in it. from
// must occur exactly once in the file. In to, OFF stands for an expression that is true when the check
// is switched off. With to "", from is a condition that is made false by OFF.
type change struct{ file, from, to string }

// check is a part of the product that keeps a lie from reaching its goal. Its changes together switch
// it off.
type check struct {
	name    string
	changes []change
}

// switches is the package with the switches, which only a build without checks contains.
const switches = "internal/unchecked"

// with returns the code that replaces the fragment. off is the expression for OFF.
func (c change) with(off string) string {
	to := c.to
	if to == "" {
		at := len("if ")
		if strings.HasPrefix(c.from, "case ") {
			at = len("case ")
		}
		condition, end := c.from[at:len(c.from)-1], c.from[len(c.from)-1:]
		if begin, rest, ok := strings.Cut(condition, "; "); ok {
			to = c.from[:at] + begin + "; !OFF && (" + strings.TrimSpace(rest) + ")"
		} else {
			to = c.from[:at] + "!OFF && (" + strings.TrimSpace(condition) + ")"
		}
		if end == "{" {
			to += " "
		}
		to += end
	}
	return strings.ReplaceAll(to, "OFF", off)
}

// overlay writes copies of the source files in which the checks in list can be switched off to dir, and
// returns the path of the overlay file for the go command. root is the folder of the module. A program
// built with it reads the environment variable UNCHECKED, names of checks separated by bars, and
// switches these off; with always it switches off all.
func overlay(root, dir string, list []check, always bool) (string, error) {
	files := make(map[string][]byte)
	var names []string
	for n, c := range list {
		off := fmt.Sprintf("unchecked.Off[%d]", n)
		names = append(names, c.name)
		for _, ch := range c.changes {
			b := files[ch.file]
			if b == nil {
				var err error
				if b, err = os.ReadFile(filepath.Join(root, ch.file)); err != nil {
					return "", err
				}
			}
			if n := bytes.Count(b, []byte(ch.from)); n != 1 {
				return "", fmt.Errorf("%s: %s has %d times\n%s", c.name, ch.file, n, ch.from)
			}
			files[ch.file] = bytes.Replace(b, []byte(ch.from), []byte(ch.with(off)), 1)
		}
	}
	for name, b := range files {
		at := bytes.Index(append([]byte{'\n'}, b...), []byte("\npackage "))
		end := bytes.IndexByte(b[max(at, 0):], '\n')
		if at < 0 || end < 0 || !bytes.Contains(b, []byte("unchecked.Off")) {
			return "", fmt.Errorf("%s is no Go file, or nothing can be missing there", name)
		}
		files[name] = slices.Concat(b[:at+end], []byte("\n\nimport \"agentsite/"+switches+"\"\n"), b[at+end:])
	}
	files[switches+"/unchecked.go"] = fmt.Appendf(nil, `package unchecked

import (
	"os"
	"slices"
	"strings"
)

// Off says which checks are missing.
var Off = func() (off [%d]bool) {
	for i, name := range %#v {
		off[i] = %v || slices.Contains(strings.Split(os.Getenv("UNCHECKED"), "|"), name)
	}
	return off
}()
`, len(names), names, always)
	var o struct{ Replace map[string]string }
	o.Replace = make(map[string]string)
	for name, b := range files {
		abs, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(at, b, 0o600); err != nil {
			return "", err
		}
		o.Replace[abs] = at
	}
	b, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, "overlay.json")
	return at, os.WriteFile(at, b, 0o600)
}

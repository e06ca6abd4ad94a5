package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// setFile has the goals with their outcomes, stored before the rules were tuned for them.
const setFile = "internal/app/demo/testdata/goals.tsv"

// A trial is one goal of the set: the conclusion has all of wants if it is solved.
type trial struct {
	kind, text string
	wants      []string
}

func readSet() (list []trial, err error) {
	b, err := os.ReadFile(setFile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(cells) != 3 {
			continue
		}
		list = append(list, trial{cells[0], strings.ReplaceAll(cells[1], `\n`, "\n"), strings.Split(cells[2], ";")})
	}
	return list, nil
}

// tally are the sums of one way to work on the set. Tokens and money of talk and work are in this order.
type tally struct {
	way           string
	solved, total map[string]int
	tasks, turns  int
	tokens        [2]int64
	money         [2]float64
	took          time.Duration
}

// ways to work on the set, in the order of the report.
const (
	alone    = "one agent alone"
	byRules  = "team by rules"
	scripted = "team by a scripted model"
	endpoint = "team by the model of -llm-url"
)

// client calls the API of a portal.
type client struct{ base, token string }

func (c client) callAPI(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, resp.StatusCode, b)
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// measureSet works on the set with the agents of a demo of three portals, in each way.
func measureSet(ctx context.Context, binary, url, model string, most int, verbose bool, out io.Writer) error {
	set, err := readSet()
	if err != nil {
		return err
	}
	set = set[:min(len(set), most)]
	dir, err := os.MkdirTemp("", "goals-set")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rows []tally
	// Each way has a demo of its own, because portals bound the questions from others in a while.
	add := func(way, url, model string, solve func(context.Context, client, string, *tally) (string, error)) error {
		t := tally{way: way, solved: make(map[string]int), total: make(map[string]int)}
		person, stop, err := startDemo(ctx, binary, filepath.Join(dir, fmt.Sprint("demo-", len(rows))))
		defer stop()
		if err == nil && url != "" {
			err = person.callAPI(ctx, http.MethodPost, "/api/v1/models", map[string]any{"name": "default", "url": url,
				"model": model, "portal": true, "price": map[string]float64{"input": 1, "output": 4}}, nil)
		}
		if err != nil {
			return err
		}
		began := time.Now()
		for _, k := range set {
			answer, err := solve(ctx, person, k.text, &t)
			if err != nil {
				return fmt.Errorf("%s, %q: %w", way, k.text, err)
			}
			t.total[k.kind]++
			if !slices.ContainsFunc(k.wants, func(s string) bool { return !strings.Contains(answer, s) }) {
				t.solved[k.kind]++
			} else if verbose {
				fmt.Fprintf(os.Stderr, "%s: %q: %.400q\n", way, k.text, answer)
			}
		}
		t.took = time.Since(began)
		rows = append(rows, t)
		return nil
	}
	s := newScript()
	defer s.Close()
	err = add(alone, "", "", askOne)
	if err == nil {
		err = add(byRules, "", "", giveGoal)
	}
	if err == nil {
		err = add(scripted, s.URL+"/v1", "scripted", giveGoal)
	}
	if err == nil && url != "" {
		err = add(endpoint, url, model, giveGoal)
	}
	printSet(out, rows)
	return err
}

// printSet prints the sums as a table of Markdown.
func printSet(out io.Writer, rows []tally) {
	fmt.Fprintln(out, "| way | solved | by kind | tasks | turns | tokens of talk and work | money of talk and work | "+
		"time |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|")
	for _, t := range rows {
		var kinds []string
		solved, total := 0, 0
		for _, kind := range []string{"one", "source", "both", "steps"} {
			kinds = append(kinds, fmt.Sprintf("%s %d/%d", kind, t.solved[kind], t.total[kind]))
			solved, total = solved+t.solved[kind], total+t.total[kind]
		}
		fmt.Fprintf(out, "| %s | %d of %d | %s | %d | %d | %d and %d | %.4f and %.4f | %s |\n", t.way, solved, total,
			strings.Join(kinds, ", "), t.tasks, t.turns, t.tokens[0], t.tokens[1], t.money[0], t.money[1],
			t.took.Round(100*time.Millisecond))
	}
}

var signIn = regexp.MustCompile(`(http://\S+)\s+sign in as (\w+):`)

// startDemo starts a demo of three portals and returns a client of the operator of its first portal. stop ends it.
func startDemo(ctx context.Context, binary, dir string) (operator client, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	stop = cancel
	cmd := exec.CommandContext(ctx, binary, "demo", "--portals", "3", "--keep", dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return operator, stop, err
	}
	stop = func() { cancel(); _ = cmd.Wait() } // it was interrupted, which is an error for Wait
	in := bufio.NewScanner(stdout)
	name := ""
	for in.Scan() {
		if m := signIn.FindStringSubmatch(in.Text()); m != nil && name == "" {
			operator.base, name = m[1], m[2]
		}
		if strings.HasPrefix(in.Text(), "ready: ") || strings.HasPrefix(in.Text(), "started: ") {
			break
		}
	}
	go io.Copy(io.Discard, stdout)
	if name == "" {
		return operator, stop, errors.New("the demo did not start")
	}
	folders, err := filepath.Glob(filepath.Join(dir, "*", "control.sock"))
	if err != nil {
		return operator, stop, err
	}
	for _, f := range folders {
		b, err := exec.CommandContext(ctx, binary, "token", "add", "--user", name, "--data", filepath.Dir(f)).Output()
		if err != nil {
			continue // it is the folder of another portal
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		operator.token = lines[len(lines)-1]
	}
	if operator.token == "" {
		return operator, stop, errors.New("no portal of the demo has the account " + name)
	}
	return operator, stop, nil
}

// giveGoal gives a goal and returns its conclusion.
func giveGoal(ctx context.Context, c client, text string, t *tally) (string, error) {
	var g struct {
		ID, State, Conclusion string
		Turns                 int
		Tasks                 []struct{ ID string }
		Cost                  struct {
			Talk       json.Number
			Work       json.Number
			TalkTokens int64 `json:"talk_tokens"`
			WorkTokens int64 `json:"work_tokens"`
		}
	}
	if err := c.callAPI(ctx, http.MethodPost, "/api/v1/goals", map[string]any{"goal": text}, &g); err != nil {
		return "", err
	}
	for !slices.Contains([]string{"concluded", "failed", "canceled"}, g.State) {
		if err := c.callAPI(ctx, http.MethodGet, "/api/v1/goals/"+g.ID, nil, &g); err != nil {
			return "", err
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.tasks, t.turns = t.tasks+len(g.Tasks), t.turns+g.Turns
	t.tokens[0], t.tokens[1] = t.tokens[0]+g.Cost.TalkTokens, t.tokens[1]+g.Cost.WorkTokens
	talk, _ := g.Cost.Talk.Float64()
	work, _ := g.Cost.Work.Float64()
	t.money[0], t.money[1] = t.money[0]+talk, t.money[1]+work
	if g.State != "concluded" {
		return "", nil
	}
	return g.Conclusion, nil
}

// askOne gives the whole goal to the one agent that a search finds first for it, and returns its answer.
func askOne(ctx context.Context, c client, text string, t *tally) (string, error) {
	var found struct {
		Results []struct{ Agent struct{ Handle string } }
	}
	q := regexp.MustCompile(`[\pL\pN]+`).FindAllString(text, 40)
	if err := c.callAPI(ctx, http.MethodGet, "/api/v1/search?scope=federation&limit=1&q="+strings.Join(q, "+"), nil,
		&found); err != nil {
		return "", err
	}
	if len(found.Results) == 0 {
		return "", nil
	}
	t.tasks++
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	err := c.callAPI(ctx, http.MethodPost, "/v1/chat/completions", map[string]any{
		"model":    found.Results[0].Agent.Handle,
		"messages": []any{map[string]string{"role": "user", "content": text}}}, &answer)
	if err != nil || len(answer.Choices) == 0 {
		return "", ctx.Err() // the agent failed, which is an outcome
	}
	return answer.Choices[0].Message.Content, nil
}

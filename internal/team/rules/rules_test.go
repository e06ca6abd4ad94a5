package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/team/rules"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for goal, want := range map[string][]string{
		"What is 15% of 80?":                                                {"What is 15% of 80?"},
		"Add 0.1 and 0.2. Then convert 5 km in miles.":                      {"Add 0.1 and 0.2.", "Convert 5 km in miles. <1>"},
		"Find a recipe, then translate it to French":                        {"Find a recipe", "Translate it to French <1>"},
		"Please add 3 and 4 and then double the result.":                    {"Add 3 and 4", "Double the result. <1>"},
		"Plan the day:\n- add 1 and 2\n- list three birds\n3) write a poem": {"Add 1 and 2", "List three birds", "Write a poem"},
		"Look it up, e.g. in the manual. Summarize it.":                     {"Look it up, e.g. in the manual.", "Summarize it. <1>"},
		"Translate this: hello":                                             {"Translate this: hello"},
		"Rechne 3 plus 4. Danach verdopple das Ergebnis":                    {"Rechne 3 plus 4.", "Verdopple das Ergebnis <1>"},
		"Compare apples vs. pears. Who is J. Doe?":                          {"Compare apples vs. pears.", "Who is J. Doe?"},
		"Add 1 and 3. Draw a bird.":                                         {"Add 1 and 3.", "Draw a bird."},
		"Shopping list:":                                                    {"Shopping list"},
		"?!":                                                                nil,
	} {
		var got []string
		for _, p := range rules.Split(goal) {
			s := p.Text
			for _, n := range p.Needs {
				s += fmt.Sprintf(" <%d>", n)
			}
			got = append(got, s)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", goal, got, want)
		}
	}
	many := rules.Split(strings.Repeat("Count the birds here. ", 40))
	if len(many) != rules.MaxParts || !strings.Contains(many[rules.MaxParts-1].Text, "\n") {
		t.Errorf("%d parts", len(many))
	}
}

func TestIsRefusal(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{`I did not understand "lie" at character 15`: true, "Send me a status of HTTP": true,
		"**Sorry**, I can't.": true, "I'm afraid that is beyond me": true, "I cannot do that.": true, "Please provide a text.": true,
		"Leider nein": true, "One agent fits:\n\n- [Moon]": true,
		"2 agents fit, the best first:": true, "I found no agent for “x”": true, "No agent here fits all of it.": true,
		"I call tools. Write the name": true, "**12**": false, "That is not JSON: in line 2": false, "I found 3 birds.": false, "": false,
		"Sorrel is a herb.": false, "Send mail by SMTP.": false} {
		if got := rules.IsRefusal(answer); got != want {
			t.Errorf("%q: %t", answer, got)
		}
	}
}

package e2e

import (
	"encoding/json"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestChat_DirectionFollowsTheText has texts of scripts in both directions: the last character of a paragraph stands on
// the side of its direction, in the transcript and in the field, and code runs from left to right.
func TestChat_DirectionFollowsTheText(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	texts := []struct {
		text  string
		right bool // it runs from the right
	}{
		{"مرحبا بك.", true}, {"שלום לך!", true}, {"این یک آزمایش است؟", true}, {"ہیلو دنیا۔", true}, {"سڀ ٺيڪ آهي.", true},
		{"Hello there.", false}, {"こんにちは。", false}, {"Привет, мир.", false}, {"नमस्ते।", false}, {"Γεια σου.", false},
		{"مرحبا hello.", true}, {"hello مرحبا.", false},
	}
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ada := p.User(t, "ada")
			talk := ada.Conversation()
			for _, x := range texts {
				ada.Say(talk, x.text)
			}
			ada.Say(talk, "- عنصر أول.\n\n`code.`\n\n```\nمرحبا = 1;\n```")
			b := visit(t, root, p, s).as(ada)
			b.enterRoom(talk)
			for _, x := range texts {
				quoted, _ := json.Marshal(x.text)
				if got := eval[bool](b, `(() => {
					const p = [...document.querySelectorAll("[data-messages] .prose p")].find((e) => e.textContent === `+string(quoted)+`);
					const at = (from) => { const r = document.createRange(); r.setStart(p.firstChild, from); r.setEnd(p.firstChild, from + 1); return r.getBoundingClientRect().left; };
					return at(0) > at(p.firstChild.length - 1);
				})()`); got != x.right {
					t.Errorf("%s: from the right: %v", x.text, got)
				}
				b.fill("#text", x.text)
				if got := eval[string](b, `(() => { const e = document.querySelector("#text"), s = getComputedStyle(e);
					return e.dir === "auto" || s.unicodeBidi === "plaintext" ? "by its text" : s.direction; })()`); got != "by its text" {
					t.Errorf("the field with %s runs %s", x.text, got)
				}
			}
			b.fill("#text", "")
			if got := eval[string](b, `getComputedStyle(document.querySelector("[data-messages] pre code")).direction`); got != "ltr" {
				t.Errorf("code runs %s", got)
			}
			if got := eval[bool](b, `(() => { const l = document.querySelector("[data-messages] .prose li"), s = getComputedStyle(l);
				return s.direction === "rtl" || s.unicodeBidi === "plaintext"; })()`); !got {
				t.Error("a list in Arabic runs from the left")
			}
		})
	}
}

// TestChat_EnterOfAnInputMethodSendsNothing has the orders of events in which browsers report the Enter that takes a
// candidate: during the composition, with the key code of input methods, and after the composition in the same task.
func TestChat_EnterOfAnInputMethodSendsNothing(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	talk := ada.Conversation()
	b := visit(t, root, p, desk).as(ada)
	b.enterRoom(talk)
	const events = `const e = document.querySelector("#text"); e.focus();
		const compose = (type, data) => e.dispatchEvent(new CompositionEvent(type, { bubbles: true, data }));
		const enter = (more) => e.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", code: "Enter", bubbles: true, cancelable: true, ...more }));`
	for name, order := range map[string]string{
		"during":     `compose("compositionstart", ""); enter({ isComposing: true }); compose("compositionend", "日本");`,
		"key code":   `compose("compositionstart", ""); enter({ keyCode: 229, which: 229 }); compose("compositionend", "日本");`,
		"Safari":     `compose("compositionstart", ""); compose("compositionend", "日本"); enter({ keyCode: 229, which: 229 });`,
		"right away": `compose("compositionstart", ""); compose("compositionend", "日本"); enter({ keyCode: 13, which: 13 });`,
	} {
		b.fill("#text", "にほん")
		eval[bool](b, `(() => { `+events+order+` return true; })()`)
		if got := eval[string](b, `document.querySelector("#text").value`); got != "にほん" {
			t.Errorf("%s: the field has %q: the text was sent", name, got)
		}
	}
	eval[bool](b, `(setTimeout(() => (window.__later = true), 1), true)`)
	b.until("the task of the last composition to end", `window.__later`)
	b.enter()
	b.until("one message", `document.querySelectorAll("[data-messages] > article").length === 1`)
}

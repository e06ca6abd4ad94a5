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

// TestComposing_InTheOrdersOfBrowsers has orders of events around the last key of a composition, and what isComposing
// says of that key. An order goes on in a later task behind "later".
func TestComposing_InTheOrdersOfBrowsers(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	b := visit(t, root, apptest.Start(t), desk)
	b.open("/agents")
	eval[bool](b, `(() => {
		const e = document.querySelector("#q"), say = (type, data) => e.dispatchEvent(new CompositionEvent(type, { bubbles: true, data }));
		const key = (more) => e.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...more }));
		const steps = {
			start: () => say("compositionstart", ""), update: () => say("compositionupdate", "日"), end: () => say("compositionend", "日本"),
			cancel: () => say("compositionend", ""),
			input: () => e.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing: true, data: "日本" })),
			enter: () => key({ keyCode: 13 }), during: () => key({ keyCode: 13, isComposing: true }), "229": () => key({ keyCode: 229 }),
			both: () => key({ keyCode: 229, isComposing: true }), process: () => key({ key: "Process", keyCode: 229 }),
			unknown: () => key({ key: "Unidentified", keyCode: 229, isComposing: true }), space: () => key({ key: " ", keyCode: 32 }),
			ctrl: () => key({ keyCode: 229, isComposing: true, ctrlKey: true }), shift: () => key({ keyCode: 13, shiftKey: true }),
			up: () => e.dispatchEvent(new KeyboardEvent("keyup", { key: "Enter", keyCode: 13, bubbles: true })),
		};
		e.addEventListener("keydown", (event) => { window.__said = isComposing(event); });
		window.__order = (order) => {
			window.__over = false;
			const rest = order.split(" ");
			const go = () => {
				while (rest.length > 0) {
					const step = rest.shift();
					if (step === "later") return setTimeout(() => setTimeout(go, 0), 0);
					steps[step]();
				}
				window.__over = true;
			};
			setTimeout(go, 0);
		};
		return true;
	})()`)
	for _, x := range []struct {
		browser, order string
		want           bool
	}{
		{"Chrome", "start update both input end", true},
		{"Chrome, Windows", "start update process input end", true},
		{"Chrome, Android", "start update unknown input end", true},
		{"Firefox", "start update both end input", true},
		{"Firefox, before 65", "start update during end input", true},
		{"Safari", "start update input end 229", true},
		{"Safari, with the key's own code", "start update input end enter", true},
		{"Safari, with Shift", "start update input end shift", true},
		{"Safari, a space takes the candidate", "start update input end space", true},
		{"Safari, nothing was taken", "start update cancel 229", true},
		{"Safari, a second composition follows", "start end start end 229", true},
		{"with Ctrl", "start update ctrl end", true},
		{"the key of an input method without a composition", "229", true},
		{"another Enter", "start update both input end later enter", false},
		{"another Enter, Safari", "start update input end 229 up later enter", false},
		{"another Enter behind what was not taken", "start update cancel later enter", false},
		{"a second composition", "start update both input end later start both", true},
		{"no composition", "enter", false},
		{"no composition, Shift", "shift", false},
		{"no composition, a space", "space", false},
	} {
		eval[bool](b, `(window.__order(`+js(x.order)+`), true)`)
		b.until("the end of "+x.order, `window.__over`)
		if got := eval[bool](b, `window.__said`); got != x.want {
			t.Errorf("%s: %s: composing: %v", x.browser, x.order, got)
		}
	}
}

// TestComposing_EveryHandlerOfEnterLeavesIt goes through each field of the pages that has a handler of Enter: it takes
// an Enter, and leaves that of an input method to the browser.
func TestComposing_EveryHandlerOfEnterLeavesIt(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	talk := ada.Conversation("guide")
	b := visit(t, root, p, desk).as(ada)
	for path, field := range map[string]string{
		"/agents/guide": "[data-enter-sends]", "/chat": "[name=text][data-enter-sends]",
		"/chat/" + talk: "#text", "/agents": "dialog.palette input", "/account": "dialog.palette input",
	} {
		b.open(path)
		got := eval[string](b, `(() => {
			if (`+js(field)+` === "dialog.palette input")
				document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true, cancelable: true }));
			const e = document.querySelector(`+js(field)+`);
			if (!e) return "no field";
			let sent = 0;
			HTMLFormElement.prototype.requestSubmit = () => sent++;
			e.focus();
			e.value = "日本";
			const say = (type) => e.dispatchEvent(new CompositionEvent(type, { bubbles: true, data: "日本" }));
			const enter = (more) => !e.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, keyCode: 13, ...more }));
			const taken = [];
			taken.push(enter({ isComposing: true }), enter({ keyCode: 229 }));
			say("compositionstart"); say("compositionend");
			taken.push(enter({}), enter({ keyCode: 229 }));
			if (taken.includes(true) || sent > 0) return "it takes " + taken + ", sent " + sent;
			setTimeout(() => setTimeout(() => {
				// What it does may lead to another page.
				sessionStorage.taken = `+js(path)+`;
				if (!enter({})) sessionStorage.taken = "";
			}, 0), 0);
			return "";
		})()`)
		if got != "" {
			t.Errorf("%s %s: %s", path, field, got)
			continue
		}
		b.until(path+": another Enter is taken", `sessionStorage.taken === `+js(path))
	}
}

// TestFind_SuggestsWhatAnInputMethodWrote has the order of events of Chrome: the last input comes before the end of the
// composition.
func TestFind_SuggestsWhatAnInputMethodWrote(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	b := visit(t, root, apptest.Start(t), desk)
	b.open("/agents")
	b.click("#q")
	eval[bool](b, `(() => {
		const e = document.querySelector("#q");
		const say = (type, data) => e.dispatchEvent(new CompositionEvent(type, { bubbles: true, data }));
		say("compositionstart", "");
		e.value = "gui";
		e.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing: true, data: "gui" }));
		say("compositionend", "gui");
		return true;
	})()`)
	b.until("suggestions", `document.querySelectorAll("[role=option]").length > 0`)
}

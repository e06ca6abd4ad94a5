package pages

import "testing"

func TestLanguageName(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"en": "English", "de-ch": "German (CH)", "zh-hant-tw": "Chinese (Hant, TW)", "cu": "Church Slavic", "zu": "Zulu",
		"xx-made-up": "xx-made-up", "tlh": "tlh", "not a tag": "not a tag",
	} {
		if got := LanguageName(tag); got != want {
			t.Errorf("%q is %q, not %q", tag, got, want)
		}
	}
}

package templates

import "slices"

// changed reports whether an operator changed a setting that nothing fixes.
func (v AdminSettings) changed() bool {
	return slices.ContainsFunc(v.Rows, func(r SettingRow) bool { return r.Changed.Text != "" && r.Given == "" })
}

// signUpOptions are the policies for sign-up with the one in effect selected.
func signUpOptions(now string) []Option { return SelectOptions(now, SignUps()...) }

// SignUps are the policies for sign-up, each with its text.
func SignUps() [][2]string {
	return [][2]string{{"open", "Everybody"}, {"invite", "People with an invite"}, {"closed", "Nobody"}}
}

// SelectOptions returns pairs of values and texts as options, with the value now selected.
func SelectOptions(now string, pairs ...[2]string) []Option {
	out := make([]Option, len(pairs))
	for i, p := range pairs {
		out[i] = Option{Value: p[0], Label: p[1], Selected: p[0] == now}
	}
	return out
}

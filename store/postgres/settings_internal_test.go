package postgres

import (
	"strings"
	"testing"
)

func TestServerSettings_RefuseALossOfWrites(t *testing.T) {
	t.Parallel()
	good := serverSettings{Version: "15.1", Number: 150001, Encoding: "UTF8", Fsync: "on", FullPages: "on", Commit: "on"}
	for _, c := range []struct {
		edit func(*serverSettings)
		want string // in the error; "" for none
	}{
		{func(*serverSettings) {}, ""},
		{func(s *serverSettings) { s.Commit = "remote_apply" }, ""},
		{func(s *serverSettings) { s.Commit = "off" }, "synchronous_commit=off"},
		{func(s *serverSettings) { s.Commit = "local" }, "synchronous_commit=local"},
		{func(s *serverSettings) { s.Fsync = "off" }, "fsync=off"},
		{func(s *serverSettings) { s.FullPages = "off" }, "full_page_writes=off"},
		{func(s *serverSettings) { s.Encoding = "LATIN1" }, "LATIN1"},
		{func(s *serverSettings) { s.Version, s.Number = "14.9", 140009 }, "PostgreSQL 14.9"},
	} {
		s := good
		c.edit(&s)
		err := s.check("x at db")
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

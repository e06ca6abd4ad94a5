package api_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

func TestAPI_BusyAgentRejectsTheTaskAndKeepsTheMessage(t *testing.T) {
	s := newAPISite(t)
	ann := s.Person("ann")
	id := s.open(ann, "guide")
	s.Gate.SetBusy("guide", 12*time.Second)
	at := "/conversations/" + id + "/messages"
	said := s.must(ann, http.MethodPost, at, map[string]any{"client_id": "1", "text": "Hello"}, http.StatusCreated)
	k := said["tasks"].([]any)[0].(map[string]any)
	const why = "guide is busy, about 12 s. Try again then."
	if k["state"] != "rejected" || k["retry_after"] != 12.0 || k["reason"] != why || k["agent"] != "guide" {
		t.Errorf("answered %v", said)
	}
	if got := s.must(ann, http.MethodGet, "/tasks/"+k["id"].(string), nil, http.StatusOK); got["state"] != "rejected" {
		t.Errorf("the task is %v", got)
	}
	list := s.must(ann, http.MethodGet, at, nil, http.StatusOK)["messages"].([]any)
	end := list[len(list)-1].(map[string]any)
	of := end["task"].(map[string]any)
	if of["id"] != k["id"] || of["state"] != "rejected" || of["retry_after"] != 12.0 || end["kind"] != "event" {
		t.Errorf("the transcript ends with %v", end)
	}
	again := at + "/" + strconv.Itoa(int(end["seq"].(float64))) + "/again"
	if w := s.call(ann, "", http.MethodPost, "/api/v1"+again, nil); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "12" {
		t.Errorf("again while it is busy: %d %v", w.Code, w.Header())
	}
	s.Gate.SetBusy("guide", 0)
	if next := s.must(ann, http.MethodPost, again, nil, http.StatusAccepted)["task"].(map[string]any); next["state"] != "submitted" {
		t.Errorf("again: %v", next)
	}
}

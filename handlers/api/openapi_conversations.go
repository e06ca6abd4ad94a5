package api

import (
	"net/http"

	"agentsite/handlers/openapi"
)

const (
	exampleSaid    = `{"id":"01JDA7Q3W0K4V9T2M5N8P1R6XY","seq":2,"tasks":[{"id":"01JDA7Q3W1B6C8D0E2F4G6H8JK","agent":"calc","state":"submitted"}]}`
	exampleMessage = `{"messages":[{"seq":3,"id":"01JDA7Q3X5M7N9P1Q3R5S7T9VW","sender":{"kind":"agent","handle":"calc","verified":true},"kind":"text",
		"parts":[{"text":"36"}],"target":2,"task":{"id":"01JDA7Q3W1B6C8D0E2F4G6H8JK","state":"completed"},"created_at":"2026-11-22T09:30:01.204Z"}],"next_cursor":""}`
)

const aboutLive = "A WebSocket, or server-sent events with `Accept: text/event-stream`. Each event is one JSON object whose `type` is also the name of the server-sent event: " +
	"`message` (a Message with its `seq`: every change that stays), `delta` (`task_id`, `offset`, `text`: a piece of an answer being written), `task` (the present state of a task), " +
	"`presence` (`handles`), `typing` (`handle`) and `read` (`handle`, `seq`). Only messages stay: whoever connects again with the last `seq` they saw gets everything behind it, no gap and nothing twice, " +
	"and the text so far of what is being written. A WebSocket takes `{\"type\":\"typing\"}` and `{\"type\":\"read\",\"seq\":7}`. It is closed with 1013 when the reader is too slow, with 1012 when the portal stops."

// stream answers with events.
func stream(text string) map[int]openapi.Answer {
	return map[int]openapi.Answer{
		http.StatusSwitchingProtocols: {Text: "A WebSocket."},
		http.StatusOK:                 {Text: text, Media: openapi.Media{"text/event-stream": {"type": "string"}}},
	}
}

// contents is the schema of the contents of a file, stored or uploaded.
var contents = openapi.Schema{"type": "string", "contentMediaType": "application/octet-stream"}

func conversationOperations() []openapi.Operation {
	const room, message = "/conversations/{id}", "/conversations/{id}/messages/{seq}"
	aRoom, aMessage := ok("The conversation.", ConversationJSON{}), ok("The message as it is now.", MessageJSON{})
	newRoom := made("The new conversation.", ConversationJSON{})
	return []openapi.Operation{
		{Method: "GET", Path: "/conversations", ID: "listConversations", Tag: "conversations", Summary: "List the caller's conversations", Scopes: readsChat, Query: []string{"filter", "list_limit", "cursor"},
			Text: "Those that are not archived, the last changed first.", Answers: ok("A page of conversations, with `unread`.", list("conversations", []ConversationJSON{}))},
		{Method: "POST", Path: "/conversations", ID: "createConversation", Tag: "conversations", Summary: "Begin a conversation", Scopes: talks, Anonymous: true, Missing: true, Conflict: true,
			Text: "The caller is always a member. A caller without a session gets one, as a visitor, if the portal takes visitors.", Body: conversationBody{}, Example: `{"title":"Sums","members":["calc"]}`, Answers: newRoom},
		{Method: "GET", Path: "/conversations/search", ID: "searchMessages", Tag: "conversations", Summary: "Find messages in all conversations", Scopes: readsChat, Query: []string{"q", "limit", "cursor"},
			Answers: ok("A page of messages, newest first.", list("results", []foundJSON{}))},
		{Method: "GET", Path: room, ID: "getConversation", Tag: "conversations", Summary: "Read a conversation's members and settings", Scopes: readsChat, Answers: aRoom},
		{Method: "PATCH", Path: room, ID: "changeConversation", Tag: "conversations", Summary: "Change a conversation's settings, or the caller's own", Scopes: talks, Conflict: true, Body: roomBody{}, Example: `{"title":"Taxes"}`,
			Text: "`title`, `speaks`, `speaker`, `past`, `hops`, `turns` and `budget` are for owners; `pinned`, `archived` and `notify` are settings of the member.", Answers: aRoom},
		{Method: "DELETE", Path: room, ID: "leaveConversation", Tag: "conversations", Summary: "Leave a conversation", Scopes: talks, Text: "When the last person leaves, it is removed with everything that was said.", Answers: nothingSaid()},
		{Method: "GET", Path: room + "/messages", ID: "listMessages", Tag: "conversations", Summary: "Read messages", Scopes: readsChat, Query: []string{"after", "before", "order", "message_limit"},
			Text:    "In the order of `seq`, which counts 1, 2, 3 without gaps. `next_cursor` is the `after` of the next page.",
			Answers: map[int]openapi.Answer{http.StatusOK: {Text: "Messages.", JSON: list("messages", []MessageJSON{}), Example: exampleMessage}}},
		{Method: "POST", Path: room + "/messages", ID: "say", Tag: "conversations", Summary: "Say something", Scopes: talks, Conflict: true, Body: sayBody{}, Example: `{"client_id":"m1","text":"15% of 240"}`,
			Text:    "When it is answered, the message is on disk. The same `client_id` again is answered with 200 and the first answer. With a session, a message to an agent whose text leaves the portal is refused with 409 and the field `told` until the person saw the disclosure.",
			Answers: map[int]openapi.Answer{http.StatusCreated: {Text: "It was said.", JSON: saidAnswer, Example: exampleSaid}, http.StatusOK: {Text: "It was said before.", JSON: saidAnswer}}},
		{Method: "GET", Path: message, ID: "getMessage", Tag: "conversations", Summary: "Read one message", Scopes: readsChat, Answers: aMessage},
		{Method: "PATCH", Path: message, ID: "editMessage", Tag: "conversations", Summary: "Edit a message", Scopes: talks, Conflict: true, Body: editBody{}, Example: `{"text":"15% of 242"}`, Answers: aMessage},
		{Method: "DELETE", Path: message, ID: "takeMessageAway", Tag: "conversations", Summary: "Take a message away", Scopes: talks, Conflict: true, Answers: aMessage},
		{Method: "GET", Path: message + "/edits", ID: "listEdits", Tag: "conversations", Summary: "Read what a message said before", Scopes: readsChat,
			Answers: ok("Its earlier versions, oldest first.", openapi.Object{"edits": []MessageJSON{}})},
		{Method: "PUT", Path: message + "/reactions/{emoji}", ID: "react", Tag: "conversations", Summary: "React to a message", Scopes: talks, Conflict: true, Answers: aMessage},
		{Method: "DELETE", Path: message + "/reactions/{emoji}", ID: "takeReactionBack", Tag: "conversations", Summary: "Take a reaction back", Scopes: talks, Conflict: true, Answers: aMessage},
		{Method: "POST", Path: message + "/again", ID: "answerAgain", Tag: "conversations", Summary: "Ask for an answer once more", Scopes: talks, Conflict: true,
			Answers: map[int]openapi.Answer{http.StatusAccepted: {Text: "The task that answers.", JSON: openapi.Object{"task": taskRefJSON{}}}}},
		{Method: "POST", Path: room + "/branch", ID: "branchConversation", Tag: "conversations", Summary: "Go on from a message in a conversation of one's own", Scopes: talks, Conflict: true, Body: branchBody{}, Example: `{"seq":5}`, Answers: newRoom},
		{Method: "POST", Path: room + "/members", ID: "addMembers", Tag: "conversations", Summary: "Add members", Scopes: talks, Conflict: true, Body: membersBody{}, Example: `{"members":["guide"]}`,
			Answers: map[int]openapi.Answer{http.StatusCreated: {Text: "The new members.", JSON: openapi.Object{"members": []memberJSON{}}}}},
		{Method: "DELETE", Path: room + "/members", ID: "removeMembers", Tag: "conversations", Summary: "Remove members", Scopes: talks, Conflict: true, Query: []string{"body_handle"}, Body: membersBody{}, Optional: true,
			Text: "Names them in `handle` or in a body. Programs whose HTTP client sends no body with DELETE name one in the query.", Answers: nothingSaid()},
		{Method: "PATCH", Path: room + "/members/{handle}", ID: "setRole", Tag: "conversations", Summary: "Change a member's role", Scopes: talks, Conflict: true, Body: roleBody{}, Example: `{"role":"reader"}`, Answers: nothingSaid()},
		{Method: "DELETE", Path: room + "/members/{handle}", ID: "removeMember", Tag: "conversations", Summary: "Remove a member", Scopes: talks, Conflict: true, Answers: nothingSaid()},
		{Method: "GET", Path: room + "/links", ID: "listLinks", Tag: "conversations", Summary: "List links to a conversation", Scopes: readsChat, Answers: ok("Of an owner all, of others their own.", openapi.Object{"links": []linkJSON{}})},
		{Method: "POST", Path: room + "/links", ID: "createLink", Tag: "conversations", Summary: "Make a link to a conversation", Scopes: talks, Conflict: true, Body: linkBody{}, Example: `{"kind":"read","life":"24h"}`,
			Answers: map[int]openapi.Answer{http.StatusCreated: {Text: "The link. Its `url` is shown only once.", JSON: linkJSON{}}}},
		{Method: "DELETE", Path: room + "/links/{link}", ID: "endLink", Tag: "conversations", Summary: "End a link", Scopes: talks, Answers: nothingSaid()},
		{Method: "GET", Path: room + "/disclosures", ID: "listDisclosures", Tag: "conversations", Summary: "See where the text to agents goes", Scopes: readsChat,
			Answers: ok("Each agent whose text leaves the portal.", openapi.Object{"disclosures": []disclosureJSON{}})},
		{Method: "POST", Path: room + "/disclosures", ID: "disclose", Tag: "conversations", Summary: "Store that the disclosure was shown, and the data to share", Scopes: talks, Conflict: true, Body: disclosureBody{}, Example: `{"agent":"llama","share":"own"}`, Answers: nothingSaid()},
		{Method: "POST", Path: room + "/read", ID: "markRead", Tag: "conversations", Summary: "Note how far one has read", Scopes: readsChat, Body: readBody{}, Example: `{"seq":7}`, Answers: nothingSaid()},
		{Method: "POST", Path: room + "/typing", ID: "type", Tag: "conversations", Summary: "Notify others that the caller is typing", Scopes: talks, Answers: nothingSaid()},
		{Method: "POST", Path: room + "/stop", ID: "stop", Tag: "conversations", Summary: "Stop whatever is answering", Scopes: talks, Answers: ok("How many were stopped.", openapi.Object{"stopped": 0})},
		{Method: "GET", Path: room + "/export", ID: "exportConversation", Tag: "conversations", Summary: "Write a conversation down", Scopes: readsChat, Query: []string{"format"},
			Answers: map[int]openapi.Answer{http.StatusOK: {Text: "What the caller sees of it.", JSON: openapi.Object{"conversation": ConversationJSON{}, "messages": []MessageJSON{}}, Media: openapi.Media{"text/markdown": {"type": "string"}}}}},
		{Method: "GET", Path: room + "/live", ID: "followConversation", Tag: "conversations", Summary: "Follow a conversation live", Scopes: readsChat, Query: []string{"resume_after", "html"}, Text: aboutLive, Answers: stream("Server-sent events. `Last-Event-ID` stands for `after`.")},
		{Method: "GET", Path: "/live", ID: "followNews", Tag: "conversations", Summary: "Follow the news of all conversations live", Scopes: readsChat,
			Text:    "A WebSocket, or server-sent events with `Accept: text/event-stream`. Each event is `news`: `conversation_id`, `title`, `seq`, `from`, `snippet`, `mention`, and `quiet` when the caller does not want to be disturbed.",
			Answers: stream("Server-sent events.")},
		{Method: "GET", Path: "/join/{secret}", ID: "getInvitation", Tag: "conversations", Summary: "See what a join link leads to", Scopes: talks,
			Answers: ok("The conversation. Its id is for members only.", openapi.Object{"title": "", "role": "", "by": "", "members": []memberJSON{}, "past": pastWords, "member": false, "conversation_id?": openapi.Ref("Id")})},
		{Method: "POST", Path: "/join/{secret}", ID: "join", Tag: "conversations", Summary: "Join a conversation by a link", Scopes: talks, Conflict: true, Answers: aRoom},
		{Method: "GET", Path: "/shared/{secret}", ID: "readShared", Tag: "conversations", Summary: "Read a conversation by a read link", Anonymous: true, Query: []string{"before", "message_limit"},
			Text:    "The secret alone gives access; the caller is ignored.",
			Answers: ok("A page of what was said until the link was made, the last messages first to be given.", openapi.Object{"title": "", "by": "", "shared_at": openapi.Ref("Time"), "members": []memberJSON{}, "messages": []MessageJSON{}, "earlier_seq": 0})},

		{Method: "POST", Path: "/files", ID: "sendFile", Tag: "files", Summary: "Send a file", Scopes: talks, Query: []string{"file_name"},
			Text:    "As the body itself, or as the first file of a form. It may have 64 MiB, a visitor's 4 MiB. One that no message holds is removed after a day.",
			Body:    openapi.Media{"application/octet-stream": contents, "multipart/form-data": {"type": "object", "properties": openapi.Schema{"file": contents}, "required": []string{"file"}}},
			Answers: made("What the portal knows of it. `url` is for a part of a message.", fileJSON{})},
		{Method: "GET", Path: "/files/{hash}", ID: "getFile", Tag: "files", Summary: "Fetch a file", Scopes: readsChat, Schemes: []string{"fileKey"}, Query: []string{"file_name"},
			Text: "For its sender, and for readers of a message that contains it.",
			Answers: map[int]openapi.Answer{http.StatusOK: {Text: "The file.", Media: openapi.Media{"*/*": contents}}, http.StatusPartialContent: {Text: "The range that `Range` asks for.", Media: openapi.Media{"*/*": contents}},
				http.StatusNotModified: {Text: "It is the file that `If-None-Match` names."}}},
		{Method: "GET", Path: "/files/{hash}/preview", ID: "getPreview", Tag: "files", Summary: "Fetch a small picture of a picture", Scopes: readsChat,
			Answers: map[int]openapi.Answer{http.StatusOK: {Text: "A PNG.", Media: openapi.Media{"image/png": contents}}, http.StatusNotModified: {Text: "It is the picture that `If-None-Match` names."}}},

		{Method: "GET", Path: "/tasks", ID: "listTasks", Tag: "tasks", Summary: "List the caller's tasks", Scopes: followsUp, Query: []string{"conversation", "task_state", "list_limit", "cursor"}, Answers: ok("A page of tasks, newest first, without `history`.", list("tasks", []taskJSON{}))},
		{Method: "GET", Path: "/tasks/{id}", ID: "getTask", Tag: "tasks", Summary: "Read a task", Scopes: followsUp, Answers: ok("The task, with what was asked and answered.", taskJSON{})},
		{Method: "POST", Path: "/tasks/{id}/cancel", ID: "cancelTask", Tag: "tasks", Summary: "Cancel a task", Scopes: followsUp, Conflict: true, Answers: ok("The task.", taskJSON{})},
		{Method: "POST", Path: "/tasks/{id}/input", ID: "answerTask", Tag: "tasks", Summary: "Answer a task that waits for input", Scopes: followsUp, Conflict: true, Body: taskInputBody{}, Example: `{"text":"the second one"}`,
			Text: "The answer is a message in the task's conversation.", Answers: ok("The task, with the number of the message.", answeredTaskJSON{})},
	}
}

var (
	saidAnswer = openapi.Object{"id": openapi.Ref("Id"), "seq": 0, "tasks?": []taskRefJSON{}, "held?": 0}
	pastWords  = openapi.Ref("Past")
)

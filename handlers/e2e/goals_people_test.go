package e2e

import (
	"net/http"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestGoals_PeopleTakePart is about a team with people: one answers in the conversation, one is late, and the person
// that gave the goal answers on its page.
func TestGoals_PeopleTakePart(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		if !s.scripts {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ada, ben := p.User(t, "ada"), p.User(t, "ben")
			b := visit(t, root, p, s).as(ada)
			start := func(goal string, seconds int) string {
				var out struct{ ID string }
				ada.Get(http.MethodPost, "/api/v1/goals", map[string]any{"goal": goal, "recruit": "here",
					"members": []string{"ben", "ada"}, "person_seconds": seconds}, http.StatusAccepted, &out)
				return out.ID
			}
			b.open("/goals/new")
			b.fill("#goal", "Ask ben for a number. What is 15% of 80?")
			eval[bool](b, `document.querySelector(".more-fields").open = true`)
			b.fill("#members", "ben, ada")
			b.fill("#person_minutes", "5")
			b.press(`button[name="preview"]`)
			b.says("named in this part")
			b.holds("#person_minutes", "5")
			b.shot("goals-people-preview-"+name, true)

			id := start("Ask ben for a number. Ask ada for a word. What is 15% of 80?", 600)
			b.open("/goals/" + id)
			b.until("the questions", `document.querySelector(".goal-task-input") && document.querySelector(".goal-task-working a[href^='/chat/']")`)
			b.shot("goals-people-"+name, true)
			var list struct {
				Invitations []struct {
					Room string `json:"conversation_id"`
				}
			}
			ben.Get(http.MethodGet, "/api/v1/invitations", nil, http.StatusOK, &list)
			room := list.Invitations[0].Room
			ben.Must(http.MethodPost, "/api/v1/conversations/"+room+"/accept", nil, http.StatusOK)
			ben.Must(http.MethodPost, "/api/v1/conversations/"+room+"/messages",
				map[string]any{"client_id": "one", "text": "It is 42."}, http.StatusCreated)
			b.until("the answer of ben", `[...document.querySelectorAll(".goal-event-ended")].some(e => e.innerText.includes("It is 42."))`)
			b.fill(`.goal-ask input[name="answer"], .goal-ask textarea[name="answer"]`, "river")
			b.press(`.goal-ask .button-primary`)
			b.until("the conclusion", `document.querySelector(".goal-concluded") && ["It is 42.", "river", "12"].every(w => document.querySelector(".goal-conclusion").innerText.includes(w))`)

			id = start("Ask ben for a colour. What is 15% of 80?", 1)
			b.open("/goals/" + id)
			b.until("the end without ben", `document.querySelector(".goal-concluded") && document.querySelector(".goal-conclusion").innerText.includes("ben did not answer within 1s") && document.querySelector(".goal-conclusion").innerText.includes("12")`)
			b.shot("goals-people-late-"+name, true)
			if s.width == desk.width {
				b.look("goal-people")
			}
			b.clean("goals-people")
		})
	}
}

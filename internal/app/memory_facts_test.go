package app_test

import (
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// spoken are facts that a person mentions, each with a later question in other words and the word that answers it.
var spoken = []struct{ fact, question, answer string }{
	{"The person has a dog named Rex.", "What is my pet called?", "Rex"},
	{"The person is allergic to peanuts.", "Which food must I avoid?", "peanuts"},
	{"The person's daughter Mia starts school in September.", "When does my child begin with her classes?", "September"},
	{"The person works as a nurse in a children's hospital.", "What is my job?", "nurse"},
	{"The person lives in Basel near the river.", "In which city is my home?", "Basel"},
	{"The person drives an old blue Volvo.", "Which car do I own?", "Volvo"},
	{"The person plays the cello in an amateur orchestra.", "Which instrument do I play?", "cello"},
	{"The person prefers answers in short bullet points.", "How do I want your replies to look?", "bullet"},
	{"The person's mother turns seventy on 12 May.", "When is my mum's birthday party due?", "12 May"},
	{"The person is learning Portuguese for a trip to Lisbon.", "Which language am I studying?", "Portuguese"},
	{"The person runs a marathon in Berlin next autumn.", "What race am I training for?", "marathon"},
	{"The person does not eat meat.", "Can you suggest a dinner that fits my diet?", "meat"},
	{"The person's flat has three rooms and a balcony.", "How big is the place I rent?", "three rooms"},
	{"The person wants to quit smoking before Christmas.", "Which bad habit did I want to give up?", "smoking"},
	{"The person's brother Tom is a pilot.", "What does my sibling do for a living?", "pilot"},
	{"The person decided to buy a heat pump instead of a gas boiler.", "What heating did I choose for the house?", "heat pump"},
	{"The person wears size 42 shoes.", "What is my shoe size?", "42"},
	{"The person's favourite author is Ursula Le Guin.", "Whose books do I love most?", "Le Guin"},
	{"The person has a meeting with the bank every first Monday.", "When do I see my banker?", "Monday"},
	{"The person keeps bees on the roof.", "Which insects do I look after?", "bees"},
	{"The person's blood type is A negative.", "What is my blood group?", "A negative"},
	{"The person takes the train to work because of back pain.", "How do I commute?", "train"},
	{"The person plans to marry Jana in June.", "When is my wedding?", "June"},
	{"The person grew up on a farm in Norway.", "Where did I spend my childhood?", "Norway"},
	{"The person's laptop runs Debian Linux.", "Which operating system is on my computer?", "Debian"},
	{"The person is afraid of flying.", "How do I feel about planes?", "flying"},
	{"The person's grandfather was a watchmaker.", "What was my grandpa's trade?", "watchmaker"},
	{"The person saves money for a sailing boat.", "What am I putting money aside for?", "boat"},
	{"The person drinks tea but no coffee.", "What hot beverage do I like?", "tea"},
	{"The person's company is called Northwind Traders.", "What is the name of my employer's firm?", "Northwind"},
	{"The person gets migraines from red wine.", "What causes my headaches?", "wine"},
	{"The person's garden has apple and pear trees.", "What fruit grows in my yard?", "pear"},
	{"The person goes swimming every Thursday evening.", "On which day do I swim?", "Thursday"},
	{"The person's tax adviser is Ms Keller.", "Who helps me with my taxes?", "Keller"},
	{"The person wants no emails on weekends.", "When should I not get mail?", "weekends"},
	{"The person's knee was operated on in 2023.", "Which surgery did I have?", "knee"},
	{"The person collects stamps from Japan.", "What do I collect?", "stamps"},
	{"The person's budget for the kitchen is 15,000 francs.", "How much may the new kitchen cost?", "15,000"},
	{"The person supports the football club FC Sankt Pauli.", "Which soccer team is mine?", "Pauli"},
	{"The person's neighbour waters the plants during holidays.", "Who takes care of my flowers when I travel?", "neighbour"},
}

// Of 40 facts that a person mentioned in 30 conversations, at least nine of ten come back when they are asked for in other
// words. The memory has 25 useless things besides.
func TestMemory_RecallsFortyFacts(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	model, m := agenttest.NewOpenAIServer(t), newMind()
	model.Script(m.turn)
	agent := rememberer(p.User(t, "eve"), model)
	turnOn(ada, agent)
	const talks = 30
	for i := range talks {
		text := "Hello."
		for k := i; k < len(spoken); k += talks {
			text += "\nfact: " + spoken[k].fact
		}
		sayOnce(t, ada, agent, text)
		<-m.noted
	}
	for range 5 { // things without use
		text := "Hello."
		for range 5 {
			text += "\nfact: The person mentioned the order " + apptest.Fresh("n") + " of screws and the meeting about it."
		}
		sayOnce(t, ada, agent, text)
		<-m.noted
	}
	sayOnce(t, ada, agent, "The last one is stored when this one is noted.")
	<-m.noted
	recalled := 0
	for _, s := range spoken {
		if got := sayOnce(t, ada, agent, s.question); strings.Contains(got, s.answer) {
			recalled++
		} else {
			t.Logf("not recalled by %q: %s", s.question, s.fact)
		}
		<-m.noted
	}
	t.Logf("%d of %d facts recalled", recalled, len(spoken))
	if least := len(spoken) * 9 / 10; recalled < least {
		t.Errorf("%d facts recalled, at least %d expected", recalled, least)
	}
}

// sayOnce says a text to an agent in a new conversation, and returns the answer.
func sayOnce(t *testing.T, c *apptest.Client, agent, text string) string {
	a := talkTo(t, c, agent)
	defer a.stream.Close()
	return a.say(text)
}

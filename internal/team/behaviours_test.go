package team_test

import (
	"os"
	"strings"
	"testing"
)

// behaviours are the duties of a team, by the numbers of the specification of teams, each with the tests that show it. The
// paths are from the root of the module.
var behaviours = []struct {
	number int
	what   string
	tests  string // file: test, with semicolons between them
}{
	{1, "changes of the directory are found, a foreign name stays foreign", "internal/hub/service_test.go: TestListed_IsWhatSearchFinds; internal/hub/service_test.go: TestDelete_NameIsNeverGivenAway"},
	{2, "ranking with scores, stable pages", "internal/index/bm25/index_test.go: TestQuery_TiesAreOrderedByKeyWhateverTheOrderOfPuts; internal/index/sort_test.go: TestSearch_PagesStayWhileAgentsComeAndGo"},
	{3, "presence", "agentruntime/link/lease_test.go: TestExpect_AbsentAgentsAreUnreachable; internal/index/index_test.go: TestSearch_ListsAliveFirstThenByName"},
	{4, "odd names are literal, unknown ones absent", "internal/hub/draft_test.go: TestPublish_CleansTextAndKeepsMarkup; internal/team/team_test.go: TestService_MembersThatCannotJoin"},
	{5, "recruiting benchmark", "bench/recruit/recruit_test.go: TestRecruit_HoldsItsFigures"},
	{6, "all join before the first task", "internal/team/flow/flow_test.go: TestNext_Forming"},
	{7, "attempts to form are bounded", "internal/team/flow/flow_test.go: TestNext_Forming; internal/team/flow/flow_test.go: TestNext_Limits"},
	{8, "size is enforced, and the reason reaches the model", "internal/team/flow/flow_test.go: TestNext_Forming; internal/team/team_test.go: TestService_AModelLeads"},
	{9, "a team of one concludes", "internal/team/speak_test.go: TestSpeak_ResultAndDecline"},
	{10, "who is offline or refuses is named", "internal/team/team_test.go: TestService_MembersThatCannotJoin"},
	{11, "golden transcript", "internal/team/flow/flow_test.go: TestNext_GoldenTranscript"},
	{12, "legal moves only", "internal/team/flow/flow_test.go: TestNext_RandomSequences; internal/team/flow/flow_test.go: TestNext_RefusesIllegalMoves"},
	{13, "one open turn", "internal/team/flow/flow_test.go: TestNext_RandomSequences"},
	{14, "an unknown next speaker is repaired", "internal/team/flow/flow_test.go: TestNext_RefusesIllegalMoves; internal/team/team_test.go: TestService_AModelLeads"},
	{15, "garbage leads to the rules", "internal/team/flow/flow_test.go: TestNext_GarbageLeadsToTheRules; internal/team/team_test.go: TestService_GarbageOfAModelLeadsToTheRules"},
	{16, "turns end", "internal/team/flow/flow_test.go: TestNext_Limits"},
	{17, "guard against repetition", "internal/team/flow/flow_test.go: TestNext_RefusesIllegalMoves; internal/team/flow/repeat_test.go: TestCountRepeated"},
	{18, "a silent speaker loses the turn", "internal/team/flow/flow_test.go: TestNext_Limits; internal/team/people_test.go: TestPeople_HaveTheTurn"},
	{19, "a conclusion is final", "internal/team/flow/flow_test.go: TestNext_Tasks; internal/team/team_test.go: TestService_CancelStopsEverything"},
	{20, "a further message opens it again", "internal/team/flow/flow_test.go: TestNext_Limits; internal/team/team_test.go: TestService_StepsOfThePerson"},
	{21, "people speak, steer, approve, are late", "internal/team/people_test.go: TestPeople_ALateOneIsNotWaitedFor; internal/team/team_test.go: TestService_StepsOfThePerson; handlers/e2e/goals_people_test.go: TestGoals_PeopleTakePart"},
	{22, "synchronous tasks", "internal/team/flow/flow_test.go: TestNext_Tasks"},
	{23, "asynchronous tasks", "internal/team/flow/flow_test.go: TestNext_Tasks"},
	{24, "a pause resumes once", "internal/team/flow/flow_test.go: TestNext_PauseResumesOnce"},
	{25, "bad triggers", "internal/team/flow/flow_test.go: TestNext_RefusesIllegalMoves; internal/team/flow/flow_test.go: TestNext_PauseResumesOnce"},
	{26, "a failure counts as an end and is given to another", "internal/team/team_test.go: TestService_AFailureIsTriedByAnother"},
	{27, "timeout, retry and cancel reach all", "internal/team/team_test.go: TestService_TimesOutAndGoesOn; internal/team/team_test.go: TestService_CancelReachesTeamsBelow"},
	{28, "states never go back", "internal/team/flow/flow_test.go: TestNext_RandomSequences"},
	{29, "only what a task needs reaches its owner", "internal/team/team_test.go: TestService_WorksThroughDependentParts; internal/app/goals_aware_test.go: TestGoals_AnAgentElsewhereSpeaksForItself"},
	{30, "a member gives itself a task", "internal/team/flow/flow_test.go: TestNext_MembersMoveForThemselves; internal/team/speak_test.go: TestSpeak_HasTheTurn"},
	{31, "a nested team gives one result", "internal/team/team_test.go: TestService_NestedTeams; internal/team/speak_test.go: TestSpeak_Recruits"},
	{32, "depth is bounded", "internal/team/team_test.go: TestService_NoTeamsInACircleAndNoneTooDeep"},
	{33, "no circles, limits over the tree, failure both ways", "internal/team/team_test.go: TestService_NoTeamsInACircleAndNoneTooDeep; internal/team/spend_test.go: TestSpend_TheBudgetHoldsOverTheTree"},
	{34, "one that is offline disturbs no other", "agentruntime/link/lease_test.go: TestRun_ResumesWhereThePortalIs; internal/team/team_test.go: TestService_MembersThatCannotJoin"},
	{35, "malformed messages hurt their sender only", "agentruntime/link/hostile_test.go: TestHostile_BytesEndTheConnectionOnly; handlers/live/live_test.go: TestLive_MalformedFramesEndTheirSocketOnly"},
	{36, "a replayed id has no effect", "internal/team/team_test.go: TestService_OneKeyAndSoManyGoals; agentruntime/link/hostile_test.go: TestHostile_DoneTwiceCountsOnce"},
	{37, "a reconnect changes nothing", "internal/team/team_test.go: TestService_AStopAfterAnyEventChangesNothing; agentruntime/link/lease_test.go: TestRun_ResumesWhereThePortalIs"},
	{38, "two connections of one agent", "agentruntime/link/lease_test.go: TestAttach_WhoWasWelcomedLastStays"},
	{39, "a busy agent answers elsewhere", "internal/team/team_test.go: TestService_WaitsForBusyAgentsAndAFailingStore; agentruntime/link/lease_test.go: TestRun_TasksBeyondTheBoundWaitTheirTurn"},
	{40, "a slow reader loses nothing", "handlers/live/live_test.go: TestLive_ASlowReaderGetsEverythingAndDelaysNobody"},
	{41, "a portal dies, the goal concludes", "internal/app/demo/goals_test.go: TestDemo_AGoalOutlivesAPortal"},
	{42, "kill after each event", "internal/team/team_test.go: TestService_AStopAfterAnyEventChangesNothing; bench/chaos/goals_test.go: TestCompareGoal_FindsEachBrokenPromise"},
	{43, "the log gives the state", "internal/team/flow/flow_test.go: TestNext_RandomSequences"},
	{44, "forged speakers and strangers", "internal/team/flow/flow_test.go: TestNext_RefusesIllegalMoves; internal/team/hostile_test.go: TestHostile_Strangers"},
	{45, "rights of a team below", "internal/team/team_test.go: TestService_NestedTeams; internal/team/team_test.go: TestService_ADisabledAccountAsksNoAgent; internal/app/revoke_test.go: TestStreams_EndWithTheRight"},
	{46, "what agents write is data", "agentruntime/lead/lead_test.go: TestPropose_AgentsWriteDataOnly; internal/team/hostile_test.go: TestHostile_LiesAreResults"},
	{47, "conformance kit", "agentruntime/conformance/conformance_test.go: TestRun_DoesWhatThePrefixSays"},
	{48, "a plain function owns a task", "docs/clients/link/clients_test.go: TestClients; docs/clients/team/team_test.go: TestTeam_ExamplesSpeakForThemselves"},
	{49, "costs add up", "internal/team/spend_test.go: TestSpend_CountsOnceOverTheTree; internal/app/goals_cost_test.go: TestGoals_TheirCostIsThatOfTheLedger"},
	{50, "the page shows it live", "handlers/e2e/goals_test.go: TestGoals; handlers/e2e/goals_test.go: TestGoals_Led"},
	{51, "goals over the API", "internal/app/goals_test.go: TestGoals_ATeamOfBuiltInAgentsConcludes; internal/team/team_test.go: TestService_OneKeyAndSoManyGoals"},
}

// Each behaviour has its number once, and the tests that show it exist.
func TestBehaviours_HaveTests(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for i, b := range behaviours {
		if b.number != i+1 {
			t.Errorf("behaviour %d (%s) is number %d of the list", b.number, b.what, i+1)
		}
		for one := range strings.SplitSeq(b.tests, "; ") {
			path, name, ok := strings.Cut(one, ": ")
			if _, read := files[path]; !read && ok {
				text, err := os.ReadFile("../../" + path)
				if err != nil {
					t.Error(err)
				}
				files[path] = string(text)
			}
			if !strings.Contains(files[path], "\nfunc "+name+"(t ") {
				t.Errorf("behaviour %d: %s has no %s", b.number, path, name)
			}
		}
	}
	if len(behaviours) != 51 {
		t.Errorf("%d behaviours", len(behaviours))
	}
}

package main

// The words of the kinds of queries that share no word with an agent: how a person says a task who does not
// know its name, and how it is said in Chinese. They stand in the order of the functions and domains of the
// vocabulary.
type plain struct {
	functions, domains []wording
	// Queries that no agent of the set can answer.
	unfit []string
}

// wording is a phrase in everyday English and one in Chinese.
type wording struct{ english, chinese string }

var devPlain = plain{
	functions: []wording{
		{"put into a different tongue", "翻译"},
		{"give me the gist of", "总结"},
		{"copy the numbers out of", "提取数据"},
		{"point out typos in", "校对"},
		{"make sure nobody cheated with", "审计"},
		{"fit into my week", "安排时间"},
		{"say how it will go next year with", "预测"},
		{"come up with wording for", "撰写"},
		{"draw how it should look", "设计"},
		{"I do not understand", "解答问题"},
		{"where do I get hold of", "搜索"},
		{"cheapest way to get", "比价"},
	},
	domains: []wording{
		{"papers we both have to sign", "合同"},
		{"a gadget I dreamt up and want protected", "专利"},
		{"verdicts of judges", "判决书"},
		{"what the supplier wants us to pay", "发票"},
		{"money I owe the revenue office", "报税"},
		{"monthly pay of our staff", "工资"},
		{"notes of doctors on the ward", "病历"},
		{"pills from the pharmacy", "药品"},
		{"healthy eating", "饮食营养"},
		{"planes to New York", "机票"},
		{"a bed for the night", "酒店"},
		{"a seat on the express to Berlin", "火车票"},
		{"functions and classes in Python", "源代码"},
		{"rows and columns in Postgres", "数据库"},
		{"messages that the machine printed when it crashed", "服务器日志"},
		{"dinner for four", "菜谱"},
		{"roses and tulips", "园艺"},
		{"a sofa and two armchairs", "家具"},
		{"sunshine tomorrow", "天气"},
		{"robins and sparrows", "鸟类"},
	},
	unfit: []string{
		"my puppy has a fever", "water is dripping under my sink", "teach me the violin", "is this mushroom poisonous",
		"lose at chess every time", "knit a scarf", "who won the football match last night", "repair the gearbox of a tractor",
		"how do volcanoes erupt", "train for a marathon", "funeral for my grandmother", "tie a sailing knot",
		"my tooth hurts", "count sheep to fall asleep", "solve a sudoku", "read my palm and horoscope",
		"the dog bit the postman", "tune a piano", "forgive my sister", "baptise our baby",
		"asdf qwer zxcv", "the and of to a", "xyzzy plugh", "blue seventeen elephants dance", "lorem ipsum dolor sit amet",
		"我的小狗发烧了", "水龙头漏水", "教我下围棋", "牙疼怎么办", "学拉小提琴",
	},
}

var heldPlain = plain{
	functions: []wording{
		{"get it on paper while they talk", "语音转文字"},
		{"I want it in my ears, not under my eyes", "朗读"},
		{"put in the right drawer", "分类"},
		{"throw out whatever is there twice", "去重"},
		{"I want to get better at", "教学"},
		{"ask me tricky things on", "测验"},
		{"look after it day and night", "监控"},
		{"ring me as soon as something happens with", "预警"},
		{"turn into another kind of file", "格式转换"},
		{"nobody should see whose it is", "匿名化"},
		{"beat the price down for", "谈判砍价"},
		{"save a place for me", "预订"},
	},
	domains: []wording{
		{"talk shows on my phone", "播客"},
		{"snapshots of our holiday", "照片"},
		{"cinema", "电影"},
		{"sums and equations", "数学"},
		{"kings and wars of old", "历史"},
		{"acids and salts in the lab", "化学"},
		{"the lathe in our factory", "机器"},
		{"goods on the shelves of the depot", "仓库库存"},
		{"kilowatts from the socket", "电力"},
		{"letters in Outlook", "电子邮件"},
		{"when all of us sit at the table with the boss", "会议"},
		{"Excel", "电子表格"},
		{"people who want to work for us", "求职简历"},
		{"angry callers who want their money back", "客户投诉"},
		{"what a thousand people ticked on our form", "问卷调查"},
		{"cars stuck on the motorway", "交通拥堵"},
		{"a bistro with good wine", "餐厅"},
		{"two bedrooms with a balcony", "公寓租房"},
		{"freighters on the Atlantic", "船舶"},
		{"high water at the beach", "潮汐"},
	},
	unfit: []string{
		"my cat will not eat", "the roof leaks when it rains", "learn to dance the tango", "which wood burns longest",
		"train my parrot to sing", "grow tomatoes on a balcony", "what does my dream mean", "fix the brakes of my bicycle",
		"build a birdhouse", "name for our baby girl", "make soap at home", "how to meditate",
		"stop hiccups", "who invented the umbrella and why", "breed goldfish", "learn judo",
		"carve a pumpkin", "calm a crying infant", "hem a skirt", "find water with a dowsing rod",
		"qqq www eee rrr", "is it of and so on", "frobnicate the blarg", "seven green sideways", "sed ut perspiciatis unde",
		"我的猫不吃东西", "屋顶漏雨", "种西红柿", "婴儿一直哭", "学跳探戈",
	},
}

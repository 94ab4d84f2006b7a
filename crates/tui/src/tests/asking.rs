//! How questions, the input and keys get along.

use llm_do_core::{Answer, Limits, Quantity, Schema, Scope};
use serde_json::json;
use tokio::sync::oneshot::Receiver;

use super::driver::{A_MOMENT, A_WHILE, Driver, options};
use super::requests::{extension, long, request, shell, write};
use crate::app::AppAction;
use crate::question::focus::Arrival;
use crate::{UiCommand, UiOptions, UiUpdate};

/// A chat in which a turn goes on.
fn busy_chat() -> Driver {
    let mut driver = Driver::chat();
    driver.press("go<Enter>");
    driver.commands();
    driver.begins("main", Limits::default());
    driver
}

fn answered<T>(answer: &mut Receiver<T>) -> Option<T> {
    answer.try_recv().ok()
}

#[test]
fn keys_typed_while_a_question_arrives_go_to_the_input() {
    let mut driver = busy_chat();
    driver.press("wh");
    let mut answer = driver.ask(shell());
    driver.press("y");
    driver.wait(A_WHILE);
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> whyy"), "{}", driver.screen());
}

#[test]
fn a_key_within_the_pause_goes_to_the_input_and_begins_the_pause_anew() {
    let mut driver = busy_chat();
    let mut answer = driver.ask(shell());
    driver.wait(300);
    driver.press("y<Backspace>");
    driver.wait(300);
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
    driver.press("<Backspace>");
    driver.wait(A_WHILE);
    driver.press("y");
    driver.wait(A_MOMENT);
    assert_eq!(answered(&mut answer), Some(Answer::Once));
}

#[test]
fn words_that_begin_like_an_answer_go_to_the_input() {
    let mut driver = busy_chat();
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("you know what");
    driver.wait(A_WHILE);
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> you know what"), "{}", driver.screen());
}

#[test]
fn a_word_of_one_letter_is_no_answer_either() {
    let mut driver = busy_chat();
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("a boat");
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> a boat"), "{}", driver.screen());
}

#[test]
fn an_answer_to_a_question_that_was_withdrawn_is_none_to_the_next() {
    let mut driver = busy_chat();
    let first = driver.ask(shell());
    let mut second = driver.ask(write());
    driver.wait(A_WHILE);
    driver.press("y");
    drop(first);
    driver.wait(A_MOMENT);
    assert_eq!(answered(&mut second), None);
    assert!(driver.screen().contains("write"), "{}", driver.screen());
}

#[test]
fn a_key_that_waited_long_answers_no_other_question() {
    let mut driver = busy_chat();
    let first = driver.ask(shell());
    let mut second = driver.ask(request("other", json!({})));
    driver.wait(A_WHILE);
    driver.press("y");
    drop(first);
    driver.frame();
    driver.pass(A_WHILE);
    driver.frame();
    assert_eq!(answered(&mut second), None);
}

#[test]
fn a_letter_that_is_taken_back_is_no_answer() {
    for keys in ["y<Backspace>", "y<Esc>", "y<C-c>", "y<C-u>"] {
        let mut driver = busy_chat();
        let mut answer = driver.ask(shell());
        driver.wait(A_WHILE);
        driver.press(keys);
        driver.wait(A_MOMENT);
        assert_eq!(answered(&mut answer), None, "{keys}");
    }
}

#[test]
fn what_is_pasted_at_a_question_goes_to_the_input() {
    let mut driver = busy_chat();
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.paste("yes, and more");
    driver.wait(A_WHILE);
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> yes, and more"), "{}", driver.screen());
}

#[test]
fn a_question_that_was_never_drawn_takes_no_key() {
    let mut driver = busy_chat();
    driver.wait(A_WHILE);
    let mut answer = driver.ask(shell());
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
}

#[test]
fn with_a_draft_only_tab_goes_to_the_question_and_back() {
    let mut driver = busy_chat();
    driver.press("draft");
    let mut answer = driver.ask(shell());
    driver.wait(10 * A_WHILE);
    driver.press("!<Tab><Tab>?");
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> draft!?"), "{}", driver.screen());
    driver.press("<Tab>y");
    assert_eq!(answered(&mut answer), Some(Answer::Once));
}

#[test]
fn tab_turns_only_to_a_question_that_could_be_read() {
    let mut driver = busy_chat();
    driver.press("draft");
    let [mut first, mut second] = [shell(), request("other", json!({}))].map(|request| driver.ask(request));
    driver.press("<Tab>y");
    assert_eq!(answered(&mut first), None);
    driver.wait(A_WHILE);
    driver.press("<Tab>y<Tab>y");
    assert_eq!((answered(&mut first), answered(&mut second)), (Some(Answer::Once), None));
    assert!(driver.screen().contains("> draftyy"), "{}", driver.screen());
}

#[test]
fn tab_before_a_question_could_be_read_turns_to_it_then_unless_somebody_types() {
    let mut driver = busy_chat();
    driver.press("draft");
    let mut answer = driver.ask(shell());
    driver.press("<Tab>");
    driver.wait(A_WHILE);
    driver.press("y");
    assert_eq!(answered(&mut answer), Some(Answer::Once));
    let mut answer = driver.ask(shell());
    driver.press("<Tab>!");
    driver.wait(A_WHILE);
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> draft!y"), "{}", driver.screen());
}

#[test]
fn whoever_turned_away_from_a_question_is_left_alone() {
    let mut driver = busy_chat();
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("<Tab>");
    driver.wait(10 * A_WHILE);
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> y"), "{}", driver.screen());
}

#[test]
fn the_next_question_takes_no_key_until_it_has_stood_for_a_moment() {
    let mut driver = Driver::single_run();
    let [mut first, mut second] = [shell(), request("other", json!({}))].map(|request| driver.ask(request));
    driver.wait(A_WHILE);
    driver.press("yy");
    assert_eq!((answered(&mut first), answered(&mut second)), (None, None), "a slip");
    driver.press("y");
    driver.press("y");
    assert_eq!((answered(&mut first), answered(&mut second)), (Some(Answer::Once), None));
    driver.wait(A_WHILE);
    driver.press("y");
    assert_eq!(answered(&mut second), Some(Answer::Once));
}

#[test]
fn a_question_behind_the_tree_takes_no_key_when_the_tree_is_left() {
    let mut driver = busy_chat();
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("<C-t>");
    driver.wait(A_WHILE);
    driver.press("qq");
    assert_eq!(answered(&mut answer), None);
}

#[test]
fn a_form_that_is_being_filled_in_keeps_its_keys() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let callables = vec![("greet".into(), Schema::new(schema).unwrap())];
    let mut driver = Driver::new(UiOptions { callables, ..options() }, (80, 24));
    driver.press("go<Enter>/call greet<Enter>");
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> y"), "{}", driver.screen());
}

/// A chat in which a turn goes on, with a form of two fields.
fn chat_with_form() -> Driver {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {"name": text, "yard": text}});
    let callables = vec![("greet".into(), Schema::new(schema).unwrap())];
    let mut driver = Driver::new(UiOptions { callables, ..options() }, (80, 24));
    driver.press("go<Enter>/call greet<Enter>");
    driver.commands();
    driver
}

#[test]
fn tab_goes_on_in_a_form_that_somebody_fills_in() {
    let mut driver = chat_with_form();
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("Ann<Tab>yes");
    driver.wait(A_MOMENT);
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> yes"), "{}", driver.screen());
    driver.wait(A_WHILE);
    driver.press("<Tab>y");
    driver.wait(A_MOMENT);
    assert_eq!(answered(&mut answer), Some(Answer::Once));
}

#[test]
fn words_typed_at_a_question_beside_a_form_go_to_the_form() {
    let mut driver = chat_with_form();
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("<Tab>you");
    driver.wait(A_MOMENT);
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("> you"), "{}", driver.screen());
}

#[test]
fn what_is_pasted_into_the_tree_goes_nowhere() {
    let mut driver = chat_with_form();
    driver.press("<C-t>");
    driver.paste("lost");
    driver.press("<Esc>");
    assert!(!driver.screen().contains("lost"), "{}", driver.screen());
}

#[test]
fn control_d_leaves_only_from_an_empty_input() {
    let mut driver = chat_with_form();
    driver.press("xyz<Home><C-d>");
    assert_eq!(driver.commands(), []);
    assert!(driver.screen().contains("> yz"), "{}", driver.screen());
    let mut driver = busy_chat();
    let mut answer = driver.ask(request("restart", json!({})));
    driver.wait(A_WHILE);
    driver.press("<Tab><Tab>e<Home><C-d>[<End><Backspace>]<C-s>");
    assert_eq!(driver.commands(), []);
    assert_eq!(answered(&mut answer), Some(Answer::Revise(json!([]))));
}

#[test]
fn y_before_everything_was_seen_only_hints() {
    let mut driver = Driver::single_run();
    let mut answer = driver.ask(long());
    driver.wait(A_WHILE);
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
    assert!(driver.screen().contains("more rows to see"), "{}", driver.screen());
    driver.press("a");
    driver.wait(A_WHILE);
    driver.press("1");
    assert_eq!(answered(&mut answer), None);
    driver.wait(A_WHILE);
    let before = driver.screen();
    driver.press("<End>");
    assert_ne!(driver.screen(), before);
    driver.press("y");
    assert!(driver.screen().contains("rows 22–42"), "back to what was skipped: {}", driver.screen());
    driver.read_on();
    driver.press("y");
    assert_eq!(answered(&mut answer), Some(Answer::Once));
}

#[test]
fn keys_faster_than_frames_skip_nothing() {
    let mut driver = Driver::single_run();
    let mut answer = driver.ask(long());
    driver.wait(A_WHILE);
    for key in crate::test_support::keys(&"<Space>".repeat(40)) {
        driver.app.key(key, Arrival::Alone, driver.now());
    }
    driver.frame();
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
}

#[test]
fn keys_that_come_all_at_once_are_no_answer() {
    for text in ["y<Enter>", "yes please<Enter>", "<Enter>y", "a1", " y", "quit<Enter>"] {
        let mut driver = Driver::single_run();
        let mut answer = driver.ask(shell());
        driver.wait(A_WHILE);
        driver.burst(text);
        driver.wait(A_WHILE);
        assert_eq!(answered(&mut answer), None, "{text}");
        driver.press("y");
        assert_eq!(answered(&mut answer), Some(Answer::Once), "{text}");
        let mut driver = Driver::chat();
        driver.press("go<Enter>");
        let mut answer = driver.ask(shell());
        driver.wait(A_WHILE);
        driver.burst(text);
        driver.wait(A_WHILE);
        assert_eq!(answered(&mut answer), None, "{text} in a chat");
    }
}

#[test]
fn words_where_nothing_can_be_written_are_no_answer() {
    for pieces in
        [&["just go awa", "y"][..], &["y", "ou should not"], &["hello ", "y"], &["buy it"], &["hm", "q"]]
    {
        let mut driver = Driver::single_run();
        let mut answer = driver.ask(shell());
        driver.wait(A_WHILE);
        for piece in pieces {
            driver.burst(piece);
            driver.pass(10);
        }
        driver.wait(A_WHILE);
        assert_eq!(answered(&mut answer), None, "{pieces:?} in pieces");
        let mut driver = Driver::single_run();
        let mut answer = driver.ask(shell());
        driver.wait(A_WHILE);
        for key in crate::test_support::keys(&pieces.concat()) {
            driver.app.key(key, Arrival::Alone, driver.now());
            driver.pass(60);
            driver.frame();
        }
        driver.wait(A_WHILE);
        assert_eq!(answered(&mut answer), None, "{pieces:?} letter by letter");
    }
}

#[test]
fn an_answer_with_enter_is_no_message() {
    let mut driver = busy_chat();
    let mut answer = driver.ask(shell());
    driver.burst("y<Enter>");
    assert!(driver.screen().contains("press the key alone"), "{}", driver.screen());
    driver.wait(A_WHILE);
    driver.wait(A_WHILE);
    driver.burst("y<Enter>");
    driver.wait(A_WHILE);
    assert_eq!((answered(&mut answer), driver.commands()), (None, vec![]));
    driver.press("y");
    driver.wait(A_MOMENT);
    assert_eq!(answered(&mut answer), Some(Answer::Once));
}

#[test]
fn an_amount_that_comes_at_once_with_enter_is_not_taken() {
    let mut driver = Driver::single_run();
    driver.begins("main", Limits { tool_calls: Some(10), ..Limits::default() });
    let mut answer = driver.ask_to_extend(extension(Quantity::ToolCalls));
    driver.wait(A_WHILE);
    driver.burst("500<Enter>");
    assert_eq!(answered(&mut answer), None);
    driver.press("<Enter>");
    assert_eq!(answered(&mut answer), Some(Some(500)));
    assert!(driver.screen().contains("510 calls left"), "{}", driver.screen());
}

#[test]
fn a_sentence_that_opened_the_scopes_goes_to_the_input() {
    let mut driver = Driver::chat();
    driver.press("go<Enter>");
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("a");
    driver.wait(A_MOMENT);
    assert!(driver.screen().contains("until this session ends, allow main"), "{}", driver.screen());
    driver.press("dd 1 test");
    assert!(driver.screen().contains("> add 1 test"), "{}", driver.screen());
    driver.press("<Enter>");
    assert_eq!(answered(&mut answer), None);
    assert_eq!(driver.commands(), [message("go")]);
    assert!(driver.screen().contains("then: add 1 test"), "{}", driver.screen());
}

#[test]
fn no_scope_is_chosen_from_the_start() {
    let mut driver = Driver::single_run();
    let mut answer = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("a");
    driver.wait(A_WHILE);
    driver.press("<Enter>");
    assert_eq!(answered(&mut answer), None);
    driver.press("<Down><Enter>");
    assert_eq!(answered(&mut answer), Some(Answer::Session(Scope::Exact)));
}

#[test]
fn changed_arguments_are_asked_about_before_other_questions() {
    let mut driver = Driver::single_run();
    let request =
        |tool: &str, id: &str| llm_do_core::ApprovalRequest { id: id.into(), ..request(tool, json!({})) };
    let [mut first, _second] = ["one", "two"].map(|tool| driver.ask(request(tool, tool)));
    driver.wait(A_WHILE);
    driver.press("e<Home><C-d>{\"a\": 1<C-s>");
    assert_eq!(answered(&mut first), Some(Answer::Revise(json!({"a": 1}))));
    let mut again = driver
        .ask(llm_do_core::ApprovalRequest { arguments: json!({"a": 1}).into(), ..request("one", "one") });
    driver.wait(A_WHILE);
    assert!(driver.screen().contains("main > one"), "{}", driver.screen());
    driver.press("y");
    assert_eq!(answered(&mut again), Some(Answer::Once));
}

#[test]
fn changed_arguments_that_do_not_fit_are_not_thrown_away() {
    let mut driver = Driver::single_run();
    let mut first = driver.ask(request("one", json!({})));
    driver.wait(A_WHILE);
    driver.press("e<Home><C-d>{\"a\": 1<C-s>");
    assert_eq!(answered(&mut first), Some(Answer::Revise(json!({"a": 1}))));
    let problem = Some("unknown field `a`".to_owned());
    let mut again =
        driver.ask(llm_do_core::ApprovalRequest { edit_problem: problem, ..request("one", json!({})) });
    driver.wait(A_WHILE);
    let screen = driver.screen();
    assert!(screen.contains("\"a\": 1") && screen.contains("unknown field `a`"), "{screen}");
    driver.press("y");
    assert_eq!(answered(&mut again), None);
}

#[test]
fn a_message_is_no_amount() {
    let mut driver = Driver::chat();
    driver.press("go<Enter>");
    let mut answer = driver.ask_to_extend(extension(Quantity::Tokens));
    driver.wait(A_WHILE);
    driver.press("500<Enter><Enter>");
    assert_eq!(answered(&mut answer), None);
    driver.press("<Tab>500<Enter>");
    assert_eq!(answered(&mut answer), Some(Some(500)));
}

#[test]
fn rows_that_the_input_covers_do_not_count_as_seen() {
    let mut driver = Driver::new(options(), (80, 12));
    driver.press("go<Enter>a<Enter>b<Enter>c<Enter>d<Enter>");
    let mut answer = driver.ask(write());
    driver.wait(A_WHILE);
    driver.press("y");
    assert_eq!(answered(&mut answer), None);
    let shown = |driver: &mut Driver| driver.screen().contains("indented");
    for _ in 0..40 {
        assert!(!shown(&mut driver));
        driver.press("<Down>");
        if shown(&mut driver) {
            break;
        }
        driver.press("y");
        assert_eq!(answered(&mut answer), None, "{}", driver.screen());
    }
    driver.press("y");
    driver.wait(A_MOMENT);
    assert_eq!(answered(&mut answer), Some(Answer::Once));
}

#[test]
fn a_question_has_room_on_every_screen() {
    for height in 3..14 {
        let mut driver = Driver::new(options(), (50, height));
        driver.press("go<Enter>one<S-Enter>two<S-Enter>three<S-Enter>four");
        let mut answer = driver.ask(shell());
        driver.wait(A_WHILE);
        driver.press("<Tab>");
        driver.read_on();
        let screen = driver.screen();
        assert!(height < 5 || screen.contains("approval"), "{screen}");
        driver.press("y");
        assert_eq!(answered(&mut answer), Some(Answer::Once), "{screen}");
    }
}

#[test]
fn what_has_no_room_at_all_was_not_seen() {
    for size in [(80, 1), (80, 2), (1, 24), (2, 24)] {
        let mut driver = Driver::new(UiOptions { chat: false, awaits_input: false, ..options() }, size);
        let mut answer = driver.ask(shell());
        driver.wait(A_WHILE);
        driver.press("<End>ya");
        driver.press("<Enter>");
        assert_eq!(answered(&mut answer), None, "{size:?}");
    }
}

#[test]
fn a_budget_that_was_not_seen_does_not_grow() {
    let mut driver = Driver::new(UiOptions { chat: false, awaits_input: false, ..options() }, (80, 2));
    let mut answer = driver.ask_to_extend(extension(Quantity::Tokens));
    driver.wait(A_WHILE);
    driver.press("5<Enter>");
    assert_eq!(answered(&mut answer), None);
    driver.resize((80, 4));
    driver.press("<Enter>");
    assert_eq!(answered(&mut answer), None);
    driver.press("<Down><Down><Down><Enter>");
    assert_eq!(answered(&mut answer), Some(Some(5)));
}

#[test]
fn no_screen_is_too_small() {
    for (width, height) in (1..7).flat_map(|width| (1..7).map(move |height| (width, height))) {
        let mut driver = Driver::new(options(), (width, height));
        driver.press("go<Enter>/h<Esc> draft");
        let main = driver.begins("main", Limits::default());
        driver.says(&main, "| a | b |\n|---|---|\n| 漢 | `c` |\n\n- 漢字\n\n```\ncode\n```\n");
        let _call = driver.calls_tool(&main, "look", json!({"at": "漢字"}));
        let _budget = driver.ask_to_extend(extension(Quantity::Cost));
        let _answers = [write(), long()].map(|request| driver.ask(request));
        driver.wait(A_WHILE);
        driver.press("<Tab>1<Esc><Right>");
        driver.wait(A_WHILE);
        driver.press("<Tab><End>a<Down><Esc>e漢<Esc>nno<Esc><C-t><Down>1234<Tab><Down><Esc><C-l>");
        driver.resize((height, width));
        driver.screen();
    }
}

#[test]
fn q_stops_and_n_denies_with_words() {
    let mut driver = Driver::single_run();
    let [mut first, mut second, mut third] = [shell(), shell(), shell()].map(|request| driver.ask(request));
    driver.wait(A_WHILE);
    driver.press("q");
    driver.wait(A_WHILE);
    driver.press("nnot here<Enter>");
    driver.wait(A_WHILE);
    driver.press("n<Enter>");
    assert_eq!(answered(&mut first), Some(Answer::Stop));
    assert_eq!(answered(&mut second), Some(Answer::Deny("not here".to_owned())));
    assert_eq!(answered(&mut third), Some(Answer::Deny(String::new())));
}

#[test]
fn a_scope_is_picked_by_number_or_by_arrows() {
    let mut driver = Driver::single_run();
    let [mut first, mut second] = [write(), write()].map(|request| driver.ask(request));
    driver.wait(A_WHILE);
    for keys in ["2", "<Down><Down><Down><Up><Down><Enter>"] {
        driver.press("a");
        driver.wait(A_WHILE);
        driver.press(keys);
        driver.wait(A_WHILE);
    }
    assert_eq!(answered(&mut first), Some(Answer::Session(Scope::Directory("notes".to_owned()))));
    assert_eq!(answered(&mut second), Some(Answer::Session(Scope::Tool)));
}

#[test]
fn all_answers_are_named_on_a_narrow_terminal() {
    let request = || llm_do_core::ApprovalRequest { scopes: vec![Scope::Tool], ..request("run", json!({})) };
    let mut driver = Driver::new(UiOptions { chat: false, awaits_input: false, ..options() }, (40, 20));
    let _answer = driver.ask(request());
    driver.wait(A_WHILE);
    driver.read_on();
    let screen = driver.screen();
    assert!(screen.contains("y once·a always…·n deny·q stop·e edit"), "{screen}");
}

#[test]
fn a_scope_is_shown_whole_before_it_is_granted() {
    let words = ["find", "a-directory-with-a-long-name", "-name", "an-even-longer-name-of-files", "-delete"];
    let command = Scope::CommandPrefix(words.map(str::to_owned).to_vec());
    let scopes = vec![command.clone(), Scope::Directory("notes".to_owned()), Scope::Tool];
    let request = || llm_do_core::ApprovalRequest { scopes: scopes.clone(), ..request("run", json!({})) };
    let mut driver = Driver::new(UiOptions { chat: false, awaits_input: false, ..options() }, (40, 12));
    let mut answer = driver.ask(request());
    driver.wait(A_WHILE);
    driver.read_on();
    driver.press("a");
    driver.wait(A_WHILE);
    driver.press("<Down><Down>");
    let screen = driver.screen();
    assert!(screen.contains("-delete"), "{screen}");
    driver.press("<Down><Down>");
    let screen = driver.screen();
    assert!(screen.contains(&Scope::Tool.to_string()), "{screen}");
    driver.press("2");
    assert_eq!(answered(&mut answer), None, "it was not on the screen");
    driver.screen();
    driver.press("<Enter>");
    assert_eq!(answered(&mut answer), None, "it has just come onto the screen");
    driver.wait(A_WHILE);
    driver.press("<Enter>");
    assert_eq!(answered(&mut answer), Some(Answer::Session(command)));
}

#[test]
fn scopes_that_nobody_could_read_are_not_granted() {
    let mut driver = Driver::single_run();
    let mut answer = driver.ask(write());
    driver.wait(A_WHILE);
    driver.press("a");
    driver.press("2");
    driver.press("<Down><Enter>");
    assert_eq!(answered(&mut answer), None, "they have just come");
    driver.wait(A_WHILE);
    driver.press("x2");
    assert_eq!(answered(&mut answer), None, "who types does not read");
    driver.wait(A_WHILE);
    driver.press("2");
    assert_eq!(answered(&mut answer), Some(Answer::Session(Scope::Directory("notes".to_owned()))));
}

#[test]
fn edited_arguments_are_asked_about_again_and_unchanged_ones_are_not() {
    let mut driver = Driver::single_run();
    let mut answer = driver.ask(request("restart", json!({})));
    driver.wait(A_WHILE);
    driver.press("e<C-s>");
    assert!(driver.screen().contains("nothing was changed"), "{}", driver.screen());
    driver.press("e<Backspace>\"now\": true}<C-s>");
    assert_eq!(answered(&mut answer), Some(Answer::Revise(json!({"now": true}))));
}

#[test]
fn arguments_can_be_edited_outside() {
    let mut driver = Driver::single_run();
    let mut answer = driver.ask(request("restart", json!({})));
    driver.wait(A_WHILE);
    assert_eq!(driver.press("E"), AppAction::Edit(json!({})));
    driver.app.edited(Err("the editor failed".to_owned()));
    assert!(driver.screen().contains("the editor failed"), "{}", driver.screen());
    driver.app.edited(Ok(json!({"now": 1})));
    assert_eq!(answered(&mut answer), Some(Answer::Revise(json!({"now": 1}))));
}

#[test]
fn keys_meant_for_an_editor_that_has_ended_are_no_answer() {
    for edited in [Err("there is no such editor".to_owned()), Ok(json!({}))] {
        let mut driver = Driver::single_run();
        let mut answer = driver.ask(request("restart", json!({})));
        driver.wait(A_WHILE);
        driver.press("E");
        driver.app.edited(edited);
        driver.press("y");
        assert_eq!(answered(&mut answer), None);
        driver.wait(A_WHILE);
        driver.press("y");
        assert_eq!(answered(&mut answer), Some(Answer::Once));
    }
}

#[test]
fn a_withdrawn_question_vanishes_and_the_next_one_must_be_armed() {
    let mut driver = Driver::single_run();
    let first = driver.ask(shell());
    let mut second = driver.ask(request("other", json!({})));
    driver.wait(A_WHILE);
    drop(first);
    driver.frame();
    driver.press("y");
    assert_eq!(answered(&mut second), None);
    assert!(driver.screen().contains("main > other"), "{}", driver.screen());
    drop(second);
    assert!(!driver.screen().contains("approval"), "{}", driver.screen());
}

#[test]
fn a_budget_grows_by_what_is_typed() {
    let mut driver = Driver::single_run();
    let mut cost = driver.ask_to_extend(extension(Quantity::Cost));
    let mut calls = driver.ask_to_extend(extension(Quantity::ToolCalls));
    let mut tokens = driver.ask_to_extend(extension(Quantity::Tokens));
    driver.wait(A_WHILE);
    driver.press("$0.25<Enter>");
    driver.wait(A_WHILE);
    driver.press("no<Enter>");
    assert_eq!(answered(&mut calls), None);
    driver.press("<Backspace><Backspace>5<Enter>");
    driver.wait(A_WHILE);
    driver.press("<Enter>");
    assert_eq!(answered(&mut cost), Some(Some(250_000_000)));
    assert_eq!(answered(&mut calls), Some(Some(5)));
    assert_eq!(answered(&mut tokens), Some(None));
}

#[test]
fn arrows_turn_from_a_budget_to_the_next_question() {
    let mut driver = Driver::single_run();
    let _cost = driver.ask_to_extend(extension(Quantity::Cost));
    let _call = driver.ask(shell());
    driver.wait(A_WHILE);
    driver.press("<Right>");
    assert!(driver.screen().contains("main > run_command"), "{}", driver.screen());
}

#[test]
fn escape_interrupts_and_control_c_twice_leaves() {
    let mut driver = busy_chat();
    driver.press("<Esc>");
    assert_eq!(driver.commands(), [UiCommand::Interrupt]);
    driver.press("<C-c>");
    assert_eq!(driver.commands(), [UiCommand::Interrupt]);
    driver.wait(3_000);
    driver.press("<C-c>");
    assert_eq!(driver.commands(), [UiCommand::Interrupt], "two that are far apart do not leave");
    driver.press("<C-c>");
    assert_eq!(driver.commands(), [UiCommand::Quit]);
}

#[test]
fn escape_does_nothing_to_an_idle_chat_and_control_c_clears_its_draft() {
    let mut driver = Driver::chat();
    driver.press("draft<Esc>");
    assert!(driver.screen().contains("> draft"), "{}", driver.screen());
    driver.press("<C-c>");
    assert!(!driver.screen().contains("> draft"), "{}", driver.screen());
    assert_eq!(driver.commands(), []);
    driver.wait(3_000);
    driver.press("<C-d>");
    assert_eq!(driver.commands(), [UiCommand::Quit]);
}

fn message(text: &str) -> UiCommand {
    UiCommand::Send { text: text.to_owned(), attachments: Vec::new() }
}

#[test]
fn queued_messages_go_out_one_by_one_after_the_turn() {
    let mut driver = Driver::chat();
    driver.press("one<Enter>two<Enter>three<Enter>");
    assert_eq!(driver.commands(), [message("one")]);
    driver.update(UiUpdate::Ready);
    assert_eq!(driver.commands(), [message("two")]);
    driver.update(UiUpdate::Ready);
    driver.update(UiUpdate::Ready);
    assert_eq!(driver.commands(), [message("three")]);
    assert_eq!(driver.printed(), "> one\n\n> two\n\n> three\n");
}

#[test]
fn messages_wait_for_a_command_that_takes_its_time() {
    for command in ["/clear ", "/fork ", "/goto 1", "/save notes.md", "/model small"] {
        let mut driver = Driver::chat();
        driver.press(&format!("{command}<Enter>one<Enter>two<Enter>"));
        assert_eq!(driver.commands().len(), 1, "{command}");
        driver.update(UiUpdate::Ready);
        assert_eq!(driver.commands(), [message("one")]);
        driver.update(UiUpdate::Ready);
        assert_eq!(driver.commands(), [message("two")]);
    }
}

#[test]
fn after_an_interrupt_what_was_queued_stands_in_the_input() {
    let mut driver = Driver::chat();
    driver.press("one<Enter>two<Enter>three<Enter>dra<Esc>");
    driver.update(UiUpdate::Ready);
    assert_eq!(driver.commands(), [message("one"), UiCommand::Interrupt]);
    driver.press("ft<Enter>");
    assert_eq!(driver.commands(), [message("two\nthree\ndraft")]);
}

#[test]
fn commands_become_wishes() {
    let commands = |keys: &str| {
        let mut driver = Driver::chat();
        driver.press(keys);
        driver.commands()
    };
    assert_eq!(commands("/model openai:gpt-5<Enter>"), [UiCommand::UseModel("openai:gpt-5".to_owned())]);
    assert_eq!(commands("/model <Enter>"), []);
    assert_eq!(commands("exit<Enter>"), [UiCommand::Quit]);
    assert_eq!(commands("/approvals <Enter>"), [UiCommand::ListGrants]);
    assert_eq!(commands("/revoke 2<Enter>"), [UiCommand::Revoke("2".to_owned())]);
    assert_eq!(commands("/fork <Enter>"), [UiCommand::Fork(None)]);
    assert_eq!(commands("/goto 3<Enter>"), [UiCommand::GoBack(Some(3))]);
    assert_eq!(commands("/clear <Enter>"), [UiCommand::Clear]);
    assert_eq!(commands("/save notes.md<Enter>"), [UiCommand::Save("notes.md".into())]);
    assert_eq!(commands("/save <Enter>"), []);
    assert_eq!(commands("/quit <Enter>"), [UiCommand::Quit]);
    assert_eq!(
        commands("/call greet {\"name\": \"Ann\"}<Enter>"),
        [UiCommand::Call { name: "greet".to_owned(), input: json!({"name": "Ann"}) }]
    );
    assert_eq!(commands("/call greet {\"name\"<Enter>"), []);
    // Only an entry with an input schema of its own takes JSON as its input.
    assert_eq!(commands("{\"berths\": 3}<Enter>"), [message("{\"berths\": 3}")]);
    assert_eq!(commands("/etc/hosts is what?<Enter>"), [message("/etc/hosts is what?")]);
}

#[test]
fn an_unknown_command_is_not_sent_and_can_be_corrected() {
    let mut driver = Driver::chat();
    driver.press("/modle gpt<Enter>");
    assert_eq!(driver.commands(), []);
    let screen = driver.screen();
    assert!(screen.contains("> /modle gpt") && screen.contains("did you mean `/model`?"), "{screen}");
}

#[test]
fn control_o_unfolds_what_comes_from_then_on() {
    let mut driver = Driver::single_run();
    let main = driver.begins("main", Limits::default());
    let look = |driver: &mut Driver| {
        let call = driver.calls_tool(&main, "look", json!({"at": 1}));
        driver.returns(&call, "a\nb");
        driver.printed().lines().count()
    };
    assert_eq!(look(&mut driver), 1);
    driver.press("<C-o>");
    assert!(look(&mut driver) > 4);
    driver.press("<C-o>");
    let before = driver.printed().lines().count();
    assert_eq!(look(&mut driver), before + 1);
}

#[test]
fn a_call_of_the_tree_is_cancelled() {
    let mut driver = Driver::single_run();
    let main = driver.begins("main", Limits::default());
    let call = driver.calls_tool(&main, "look", json!({}));
    let done = driver.calls_tool(&main, "done", json!({}));
    driver.returns(&done, "");
    driver.press("<C-t><Down>c");
    assert_eq!(driver.commands(), [], "one key alone cancels nothing");
    driver.press("<Up><Down>c");
    assert_eq!(driver.commands(), [], "another key came between");
    driver.press("c<Down>cc<Esc>");
    assert_eq!(driver.commands(), [UiCommand::Cancel { run: call.run, call: call.id.clone() }]);
    assert!(!driver.app.is_in_tree());
}

/** Answers of a given form: what the model is told of it, and whether an answer has it. Pure. */

import type { AnswerForm } from "./definition.ts";

/** What the model is told of the form, behind its instructions. */
export function formOf({ schema }: AnswerForm): string {
  return `When you are done, answer with one JSON value that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`;
}

/** What is wrong with an answer, in words for the model; undefined when nothing is. */
export function answerFault(text: string, { check }: AnswerForm): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "it is not JSON and nothing else";
  }
  return check(value);
}

/** What the model is told of an answer that is not of its form. */
export function reminderOf(fault: string): string {
  return `Your answer is not of the form that was asked for: ${fault.toWellFormed()}. Give the whole answer again, as JSON and nothing else.`;
}

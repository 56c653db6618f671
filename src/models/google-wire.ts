/** The part of Gemini's generateContent that Holdfast speaks, in the names of its REST form. */

/** One part of a content. */
export type GooglePart =
  | { readonly text: string; readonly thought?: true; readonly thoughtSignature?: string }
  | { readonly inlineData: { readonly mimeType: string; readonly data: string } }
  | { readonly fileData: { readonly mimeType: string; readonly fileUri: string } }
  | {
      readonly functionCall: { readonly id: string; readonly name: string; readonly args: object };
      readonly thoughtSignature?: string;
    }
  | { readonly functionResponse: { readonly id: string; readonly name: string; readonly response: object } };

/** What one side said. */
export interface GoogleContent {
  readonly role: "user" | "model";
  readonly parts: GooglePart[];
}

/** What the model may call. */
export interface GoogleFunction {
  readonly name: string;
  readonly description?: string;
  readonly parametersJsonSchema: object;
}

/** Options of the generation. */
export interface GenerationConfig {
  temperature?: number;
  topP?: number;
  topK?: number;
  maxOutputTokens?: number;
  stopSequences?: string[];
  seed?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  responseMimeType?: "application/json";
  responseJsonSchema?: object;
  thinkingConfig?: { thinkingBudget?: number; thinkingLevel?: string; includeThoughts?: boolean };
}

/** The body of a request; the model's id is in its path. */
export interface GoogleRequestBody {
  readonly systemInstruction?: { readonly parts: GooglePart[] };
  readonly contents: GoogleContent[];
  readonly tools?: readonly [{ readonly functionDeclarations: readonly GoogleFunction[] }];
  readonly toolConfig?: {
    readonly functionCallingConfig: { readonly mode: "AUTO" | "NONE" | "ANY"; readonly allowedFunctionNames?: readonly string[] };
  };
  readonly generationConfig?: GenerationConfig;
  readonly cachedContent?: string;
}

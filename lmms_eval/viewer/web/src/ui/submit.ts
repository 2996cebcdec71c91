// Starting an evaluation exactly once: the mark of a submission is kept by this tab until the server has answered.
import { api, Refusal, type Request } from "./api";

const KEY = "lmms-eval-submission";

interface Submission {
  key: string;
  body: string;
}

function kept(): Submission | null {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Submission | null;
  } catch {
    return null;
  }
}

function keep(submission: Submission | null): void {
  try {
    if (submission) sessionStorage.setItem(KEY, JSON.stringify(submission));
    else sessionStorage.removeItem(KEY);
  } catch {
    // without storage the mark lasts as long as the page
  }
}

/** Not `randomUUID`, which pages without TLS lack under a name that is not this machine's. */
function mark(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Submits a request; one that was not answered before is submitted under the same mark, so that it runs once. */
export async function submit(request: Request): Promise<string> {
  const body = JSON.stringify(request);
  const before = kept();
  const submission = before?.body === body ? before : { key: mark(), body };
  keep(submission);
  try {
    const { job_id } = await api.start(request, submission.key);
    keep(null);
    return job_id;
  } catch (error) {
    if (error instanceof Refusal && error.status < 500) keep(null);
    throw error;
  }
}

/** The job of a submission whose answer was lost; `undefined`: there is no such submission. Starts nothing. */
export async function lost(): Promise<{ job: string | null } | undefined> {
  const before = kept();
  if (!before) return undefined;
  const { job_id } = await api.submission(before.key);
  if (job_id !== null) keep(null);
  return { job: job_id };
}

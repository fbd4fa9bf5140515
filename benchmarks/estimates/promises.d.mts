export function promises(
  parts: Record<string, unknown>,
  options: { songs: number; workers: number; seed: number },
): Promise<{ ratios: number[]; unsaid: number }>

export function share(ratios: readonly number[], part: number): number

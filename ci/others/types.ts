// Something for the compiler to check, so that its trace has slices of each of its kinds.
type Deep<T, N extends unknown[] = []> = N['length'] extends 12 ? T : { next: Deep<T, [...N, T]>; value: T };
declare const deep: Deep<number>;
export const value: number = deep.next.next.next.value;
export const sum = [1, 2, 3].map((n) => n * value).reduce((a, b) => a + b, 0);

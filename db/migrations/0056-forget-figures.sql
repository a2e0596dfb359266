-- The figures of days are forgotten by their day. All moves are appended by now, so nothing is counted once more.
create index daily_figures_day on daily_figures (day);
delete from upkeep where kind = 'figures';

-- Where a refused record stands is said as a spreadsheet counts: line breaks inside of cells make no row.
alter table contact_imports rename column lines to row_numbers;
